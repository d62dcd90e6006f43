"""Methods that Python runs without a call in the text: `__str__` in `f"{meter}"`, `__len__` in `len(meter)`, and so on.

Only those of the submission's own classes count, and of them those in which the ranks may meet: whoever prints such an
object on one rank waits for the others. Where two classes could be meant, nobody is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from grader.checks.source.calls.sites import Calls
from grader.checks.source.libraries.framework_words import ALL
from grader.checks.source.libraries.names import Names
from grader.checks.source.syntax.nodes import DISPLAYS, READS, Function, name_of, walked_by
from grader.checks.source.syntax.tree import Tree
from grader.checks.source.values.sources import Values

_TEXT = ("__str__", "__repr__")
_FORMATTED = ("__format__", *_TEXT)
_TRUTH = ("__bool__", "__len__")
_BUILT_IN = {
    "bool": _TRUTH, "float": ("__float__", "__index__"), "format": _FORMATTED, "int": ("__int__", "__index__"),
    "len": ("__len__",), "print": _TEXT, "repr": ("__repr__",), "round": ("__round__",), "str": _TEXT,
}  # fmt: skip
_LOGGING = {"debug", "error", "info", "warning"}
_COMPARED = {
    ast.Lt: ("__lt__", "__gt__"), ast.Gt: ("__gt__", "__lt__"), ast.LtE: ("__le__", "__ge__"),
    ast.GtE: ("__ge__", "__le__"), ast.Eq: ("__eq__", "__eq__"), ast.NotEq: ("__ne__", "__ne__"),
}  # fmt: skip
_REPR = ord("r")
_KNOWN = {*_FORMATTED, *_TRUTH, *(n for names in (*_BUILT_IN.values(), *_COMPARED.values()) for n in names)}
_MEETING = {name for words in ALL for name in words.meets}
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp)
_MAX_DEPTH = 4


@dataclass(frozen=True, slots=True)
class Implied:
    """An expression of whose value Python asks something, and the methods that answer, one of each class."""

    node: ast.expr
    methods: tuple[Function, ...]


class Objects:
    """Of which classes of the submission a value can be."""

    def __init__(self, names: Names, calls: Calls, values: Values) -> None:
        self._names, self._calls, self._values = names, calls, values

    def classes(self, node: ast.expr) -> list[ast.ClassDef | None]:
        """The classes of what an expression may stand for, None for what nobody knows."""
        known = self._calls.owner(node)
        return [known] if known else [self._calls.built_class(o) for o in self._makers(node, _MAX_DEPTH)]

    def _makers(self, node: ast.AST, depth: int) -> Iterator[ast.AST]:
        """What an expression comes from, with the elements of what is unpacked or gone through."""
        for origin in self._values.origins(node):
            if isinstance(origin, _COMPREHENSIONS) and depth:
                yield from self._makers(origin.elt, depth - 1)
            elif isinstance(origin, ast.For | ast.comprehension) and isinstance(node, ast.Name) and depth:
                yield from self._elements(origin, node.id, depth - 1)
            else:
                yield origin

    def _elements(self, loop: ast.For | ast.comprehension, name: str, depth: int) -> Iterator[ast.AST]:
        """What a variable of a loop goes through, one after the other; the loop itself where that is not plain."""
        for held in self._values.origins(_gone_through(loop, name) or loop):
            parts: list[ast.expr] = []
            if isinstance(held, DISPLAYS):
                parts = held.elts
            elif isinstance(held, ast.Dict):
                parts = held.values
            elif isinstance(held, ast.DictComp):
                parts = [held.value]
            elif isinstance(held, _COMPREHENSIONS):
                parts = [held.elt]
            for part in parts:
                yield from self._makers(part, depth)
            if not parts:
                yield loop


def _gone_through(loop: ast.For | ast.comprehension, name: str) -> ast.expr | None:
    """`meters` of `for name, meter in meters.items()`, by the name of the variable that takes the objects."""
    source, target = loop.iter, loop.target
    method = source.func if isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute) else None
    if (
        method is not None
        and method.attr == "items"
        and isinstance(target, ast.Tuple)
        and len(target.elts) == 2
    ):
        target = target.elts[1]
    elif method is None or method.attr != "values":
        return walked_by(loop, name)
    return method.value if isinstance(target, ast.Name) and target.id == name else None


def implied_calls(trees: Iterable[Tree], names: Names, calls: Calls, values: Values) -> Iterator[Implied]:
    """All expressions that run such a method, each with its name."""
    meeting = {
        f for f in calls.functions if f.name in _KNOWN and f in calls.class_of and _meets(f, names, calls)
    }
    if not meeting:
        return
    objects, told = Objects(names, calls, values), {f.name for f in meeting}
    for tree in trees:
        for above in (tree.root, *tree.parent):
            for node, asked in _asked(above, names, calls):
                if not told.intersection(asked) or not isinstance(node, (*READS, ast.Call)):
                    continue
                owners = objects.classes(node)
                found = [_first(calls, owner, asked) if owner is not None else None for owner in owners]
                methods = tuple(dict.fromkeys(m for m in found if m in meeting))
                if methods and meeting.issuperset(found):
                    yield Implied(node, methods)


def methods_of_handed_on(
    trees: Iterable[Tree], names: Names, calls: Calls, values: Values
) -> Iterator[tuple[ast.Call, tuple[Function, ...]]]:
    """Calls of such methods on objects that a function was given, and what they run: `log.write(loss)` of its `log`.

    Nobody is told by the name alone that `write` is the submission's own.
    """
    methods = (f for f in calls.functions if f in calls.class_of and not f.name.startswith("__"))
    meeting = {f for f in methods if _meets(f, names, calls)}
    objects = Objects(names, calls, values)
    for tree in trees if meeting else ():
        for call in tree.called(*{f.name for f in meeting}):
            if isinstance(call.func, ast.Attribute) and not calls.targets(call):
                owners = objects.classes(call.func.value)
                found = [
                    calls.method(owner, call.func.attr) if owner is not None else None for owner in owners
                ]
                run = tuple(dict.fromkeys(m for m in found if m in meeting))
                if run and meeting.issuperset(found):
                    yield call, run


def _first(calls: Calls, owner: ast.ClassDef, asked: Iterable[str]) -> Function | None:
    return next((m for name in asked if (m := calls.method(owner, name)) is not None), None)


def _meets(function: Function, names: Names, calls: Calls) -> bool:
    """Whether a function, or one that it calls, may bring the ranks together."""
    work: list[ast.AST] = [function]
    seen: set[ast.AST] = set()
    while work:
        one = work.pop()
        if one in seen:
            continue
        seen.add(one)
        for call in names.tree(one).calls_within(one):
            dotted = names.qualified(call.func) or ""
            targets = calls.targets(call)
            if dotted.startswith(("torch.distributed.", "horovod.")):
                return True
            if not dotted and not targets and name_of(call) in _MEETING:
                return True
            work += targets
    return False


def _asked(above: ast.AST, names: Names, calls: Calls) -> Iterator[tuple[ast.expr, tuple[str, ...]]]:
    """What is asked of the expressions right below a node: the methods that may answer, the first that is there."""
    if isinstance(above, ast.FormattedValue):
        yield above.value, ("__repr__",) if above.conversion == _REPR else _FORMATTED
    elif isinstance(above, ast.Call):
        yield from _called(above, names, calls)
    elif isinstance(above, ast.If | ast.While | ast.IfExp | ast.Assert):
        yield above.test, _TRUTH
    elif isinstance(above, ast.UnaryOp) and isinstance(above.op, ast.Not):
        yield above.operand, _TRUTH
    elif isinstance(above, ast.BoolOp):
        yield from ((value, _TRUTH) for value in above.values)
    elif isinstance(above, ast.BinOp) and isinstance(above.op, ast.Mod):
        if isinstance(above.left, ast.Constant) and isinstance(above.left.value, str):
            parts = above.right.elts if isinstance(above.right, ast.Tuple) else [above.right]
            yield from ((part, _TEXT) for part in parts)
    elif isinstance(above, ast.Compare) and len(above.ops) == 1:
        own, reflected = _COMPARED.get(type(above.ops[0]), ("", ""))
        yield above.left, (own,)
        yield above.comparators[0], (reflected,)


def _called(call: ast.Call, names: Names, calls: Calls) -> Iterator[tuple[ast.expr, tuple[str, ...]]]:
    if isinstance(call.func, ast.Name):
        asked = _BUILT_IN.get(names.qualified(call.func) or "", ())
        yield from (
            (value, asked) for value in (call.args if call.func.id == "print" else call.args[:1]) if asked
        )
    elif isinstance(call.func, ast.Attribute) and not calls.targets(call):
        if call.func.attr == "format":
            yield from ((v, _FORMATTED) for v in (*call.args, *(k.value for k in call.keywords)))
        elif call.func.attr in _LOGGING:
            yield from ((value, _TEXT) for value in call.args)
