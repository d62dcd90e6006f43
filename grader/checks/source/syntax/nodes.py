"""The parts of a syntax tree as all questions need them: kinds, places, children, and what binds a name.

Small records and functions over single nodes; nothing here looks at a whole file.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import dropwhile, takewhile
from typing import Any, TypeAlias

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Scope: TypeAlias = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
Loop: TypeAlias = ast.For | ast.AsyncFor | ast.While
Kinds: TypeAlias = tuple[type[ast.AST], ...]
Place: TypeAlias = tuple[int, int]
"""Line (1-based) and column (0-based), as `ast` counts them."""

UNKNOWN = ast.Name(id="?", ctx=ast.Load(), lineno=0, col_offset=0)
"""Stands for an argument that may have been given, but nobody can say as what."""

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
# Tuples, because a check against `A | B` builds the union anew each time, and some of these run for every node.
DISPLAYS = (ast.Tuple, ast.List)
READS = (ast.Name, ast.Attribute, ast.Subscript)
VARIABLES = (ast.Name, ast.Attribute)
WITHS = (ast.With, ast.AsyncWith)
LOOPS = (ast.For, ast.AsyncFor, ast.While)


class PropertyRead(ast.Call):
    """`meter.avg` where that runs a method: a call of `meter.avg`, written as an attribute.

    Attributes:
        func: what is read. runs: the methods, of each class that the object may be of.
    """

    func: ast.Attribute
    runs: tuple[Function, ...]

    @property
    def value(self) -> ast.expr:
        """What stands before the dot."""
        return self.func.value

    @property
    def attr(self) -> str:
        """The property's name."""
        return self.func.attr


PropertyRead.__name__ = ast.Attribute.__name__  # `ast.unparse` writes nodes by the names of their classes


class ImpliedCall(ast.Call):
    """`meter` in `f"{meter}"`, `f` in `map(f, xs)`: calls of `meter.__str__` and `f.__call__`, written without them.

    Attributes:
        func: the method of the object. runs: the methods, of each class that the object may be of, or the function.
    """

    func: ast.Attribute
    runs: tuple[Function, ...]
    optional_vars = None

    @property
    def context_expr(self) -> ast.expr:
        """All that is written of it: `ast.unparse` takes it for the `meter` of `with meter:`."""
        return self.func.value


ImpliedCall.__name__ = ast.withitem.__name__


@dataclass(frozen=True, slots=True)
class Definition:
    """One binding of a name, or of an attribute or key of a name, in a scope.

    Attributes:
        name: `x`, `self.x` or `x['key']`.
        node: the statement, argument or clause that binds it.
        value: the expression it comes from, None where there is none.
        path: indices into `value` where it is unpacked; -1 for a starred part.
        kind: `assign`, `augment`, `for`, `with`, `parameter`, `function`, `class`, `import` or `other`.
        since: place from which it holds.
        dotted: full dotted name of what an import binds, else "".
    """

    name: str
    node: ast.AST
    value: ast.expr | None
    path: tuple[int, ...]
    kind: str
    since: Place
    dotted: str = ""


def part_of(definition: Definition) -> ast.expr | None:
    """What a definition binds its name to; unpacking is looked through where both sides are written out.

    None where there is no value, or where the part can't be told.
    """
    value = definition.value
    for index in definition.path:
        if not isinstance(value, DISPLAYS):
            return value if isinstance(value, ast.Call) else None
        if not 0 <= index < len(value.elts):
            return None
        value = value.elts[index]
    return value


def name_of(node: ast.AST) -> str:
    """The last part of a name: `c` of `a.b.c`, of `c`, of `c(…)` and of a parameter; "" of anything else."""
    while isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Name):
        return node.id
    return node.arg if isinstance(node, ast.arg) else ""


def start(node: Any) -> Place:
    """Where a node begins; (0, 0) for a module."""
    return (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))


def end(node: Any) -> Place:
    """Where a node ends."""
    return (getattr(node, "end_lineno", None) or 10**9, getattr(node, "end_col_offset", None) or 0)


# Fields without a name or call worth a visit: contexts, operators, plain strings.
_SKIPPED = {
    "arg", "attr", "conversion", "ctx", "id", "is_async", "kind", "kwd_attrs", "level", "module", "n",
    "name", "op", "ops", "rest", "s", "simple", "tag", "type_comment", "type_ignores",
}  # fmt: skip
_MOST_DIGITS = 18
FIELDS: dict[type[ast.AST], tuple[str, ...]] = {}


def fields_of(kind: type[ast.AST]) -> tuple[str, ...]:
    """Fields of a kind of node that hold nodes worth a visit."""
    fields = FIELDS.get(kind)
    if fields is None:
        no_nodes = (ast.Constant, ast.Global, ast.Import, ast.ImportFrom, ast.MatchSingleton, ast.Nonlocal)
        skipped = set(kind._fields) if issubclass(kind, no_nodes) else _SKIPPED
        fields = FIELDS[kind] = tuple(f for f in kind._fields if f not in skipped)
    return fields


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes right below one, without contexts and operators, which all nodes share."""
    found: list[ast.AST] = []
    fields = FIELDS.get(node.__class__)
    for field in fields_of(node.__class__) if fields is None else fields:
        child = getattr(node, field, None)
        if child.__class__ is list:
            found += [item for item in child if item is not None]
        elif child is not None:
            found.append(child)
    return found


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """A node and everything below it, in no particular order."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack += children(current)


def names_in(*nodes: ast.AST) -> set[str]:
    """The plain names that stand in nodes, read or bound."""
    return {part.id for node in nodes for part in walk(node) if isinstance(part, ast.Name)}


def names_bound_in(*nodes: ast.AST) -> set[str]:
    """Those of them that get a value there."""
    parts = (part for node in nodes for part in walk(node) if isinstance(part, ast.Name))
    return {name.id for name in parts if isinstance(name.ctx, ast.Store)}


def ancestors(
    parent: Mapping[ast.AST, ast.AST], node: ast.AST, outer: ast.AST | Kinds | None = None
) -> Iterator[ast.AST]:
    """What a node is written in, the innermost first, up to the whole file; `parent`: a tree's.

    `outer`: where to stop short, a node or kinds of nodes.
    """
    return (above for _, above in steps_up(parent, node, outer))


def steps_up(
    parent: Mapping[ast.AST, ast.AST], node: ast.AST, outer: ast.AST | Kinds | None = None
) -> Iterator[tuple[ast.AST, ast.AST]]:
    """The same, each with the part of it that the node stands in, which at first is the node itself."""
    kinds = outer if isinstance(outer, tuple) else ()
    above = parent.get(node)
    while above is not None and above is not outer and not isinstance(above, kinds):
        yield node, above
        node, above = above, parent.get(above)


def block_of(parent: Mapping[ast.AST, ast.AST], node: ast.AST) -> list[ast.stmt]:
    """The statements among which one stands, itself included; none around what is no statement."""
    blocks = (getattr(parent.get(node), name, None) for name in ("body", "orelse", "finalbody"))
    return next((block for block in blocks if isinstance(block, list) and node in block), [])


def earlier_in_block(parent: Mapping[ast.AST, ast.AST], statement: ast.AST) -> list[ast.stmt]:
    """Those of them that stand before it."""
    return list(takewhile(lambda other: other is not statement, block_of(parent, statement)))


def later_in_block(parent: Mapping[ast.AST, ast.AST], statement: ast.AST) -> list[ast.stmt]:
    """Those of them that stand behind it."""
    return list(dropwhile(lambda other: other is not statement, block_of(parent, statement)))[1:]


def loop_above(
    parent: Mapping[ast.AST, ast.AST], node: ast.AST, outer: ast.AST | Kinds | None = None
) -> Loop | None:
    """The innermost loop of `ancestors`, whatever functions lie between where `outer` is none."""
    return next((above for above in ancestors(parent, node, outer) if isinstance(above, LOOPS)), None)


def walked_by(loop: ast.For | ast.AsyncFor | ast.comprehension, name: str) -> ast.expr | None:
    """What one variable of a loop goes over: `q` of `for i, (p, q) in enumerate(zip(a, b))` over `b`; None unknown."""
    source, target = loop.iter, loop.target
    while not isinstance(target, ast.Name):
        if not isinstance(source, ast.Call) or not isinstance(target, DISPLAYS):
            return None
        made = name_of(source)
        parts = source.args if made == "zip" else [None, *source.args[:1]] if made == "enumerate" else []
        pairs = [
            (part, element)
            for part, element in zip(parts, target.elts, strict=False)
            if part is not None and any(isinstance(n, ast.Name) and n.id == name for n in walk(element))
        ]
        if not pairs:
            return None
        source, target = pairs[0]
    return source if target.id == name else None


def literal(node: ast.AST) -> object:
    """The value that an expression writes out, `UNKNOWN` where it is no literal."""
    if isinstance(node, ast.Constant):
        return node.value
    if (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
    ):
        number = node.operand.value
        return -number if isinstance(number, int | float) else UNKNOWN
    return UNKNOWN


def whole(text: str) -> int | None:
    """The whole number that a text is, `-` in front or not; None for any other text, and for one of many digits."""
    digits = text.removeprefix("-")
    # Letters of other scripts count as digits, too, and some of them (`²`) are none to `int`.
    return int(text) if digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS else None


def items_of(origin: ast.AST, key: object) -> Iterator[ast.expr]:
    """What a display holds under a key or index; all that a dict holds where the key is `UNKNOWN`."""
    if isinstance(origin, DISPLAYS):
        if isinstance(key, int) and -len(origin.elts) <= key < len(origin.elts):
            yield origin.elts[key]
    elif isinstance(origin, ast.Dict):
        for name, value in zip(origin.keys, origin.values, strict=True):
            if isinstance(name, ast.Constant) and (key is UNKNOWN or name.value == key):
                yield value
    elif isinstance(origin, ast.DictComp):
        yield origin.value
    elif isinstance(origin, ast.Call) and isinstance(origin.func, ast.Name) and origin.func.id == "dict":
        yield from (k.value for k in origin.keywords if key is UNKNOWN or k.arg == key)


def default_of(function: Function, parameter: ast.arg) -> ast.expr | None:
    """The default of a parameter, None where it has none."""
    spec = function.args
    positional = [*spec.posonlyargs, *spec.args]
    if parameter in positional:
        index = positional.index(parameter) - (len(positional) - len(spec.defaults))
        return spec.defaults[index] if index >= 0 else None
    if parameter in spec.kwonlyargs:
        return spec.kw_defaults[spec.kwonlyargs.index(parameter)]
    return None
