"""Tensors that are added up over the ranks although they, or what they are a view of, hold that sum already.

Follows a tensor inside one function, into helpers that reduce what they are given, and out of functions that return
what they have reduced. Where anything may have filled it anew in between, or the groups differ, nothing is claimed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations

from grader.checks.source.calls.arguments import arguments_of
from grader.checks.source.causes import CauseInText
from grader.checks.source.collectives.reduction_results import reductions
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import FUNCTIONS, READS, Place, end, literal, name_of, start, walk
from grader.checks.source.syntax.tree import Tree
from grader.checks.source.values.data_flow import source_text
from grader.model.fix import Fix

_VIEWS = {"data", "detach", "view", "view_as", "reshape", "flatten", "squeeze", "unsqueeze", "T"}
_LOOKING = ("print", "float", "int", "len", "str", "isinstance", "id")
_EXITS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_MAX_LIFTS = 3


@dataclass(frozen=True, slots=True)
class _Sum:
    """A tensor that holds a sum over the ranks from a place on.

    Attributes:
        at: the place, in the function that `variable` belongs to: the collective, or a call that leads to it.
        variable, elements: the tensor, and which of its elements; None: all of them.
        call: the collective.
    """

    at: ast.Call
    variable: str
    elements: frozenset[int] | None
    call: ast.Call


def repeated_sums(script: Script) -> Iterator[CauseInText]:
    """Second sums of one tensor, each with the first one."""
    sums = sorted(_sums(script), key=lambda one: start(one.at))
    for first, second in combinations(sums, 2):
        if _again(script, first, second):
            by = (
                ""
                if first.at is first.call
                else f", by {script.quote(first.call)} at {script.at(first.call)}"
            )
            yield CauseInText(
                (second.at, first.at),
                f"{script.at(second.at)} adds up over the ranks what {script.at(first.at)} has added up already{by}: "
                f"with N ranks {script.quote(second.at)} makes N times the sum of it.",
                f"Leave out {script.quote(second.at)} at {script.at(second.at)}: the sum over all ranks is there since "
                f"{script.at(first.at)}.",
                _left_out(script, second.at),
            )


def _sums(script: Script) -> Iterator[_Sum]:
    for call, name, tensor in reductions(script):
        op = script.argument(call, "op")
        plain = name == "all_reduce" and (op is None or name_of(op) == "SUM")
        held = _held(script, tensor) if plain else None
        if held is not None:
            found = [_Sum(call, *held, call)]
            yield from found
            for _ in range(_MAX_LIFTS):
                found = [outer for one in found for outer in _in_callers(script, one)]
                yield from found


def _held(script: Script, tensor: ast.expr, depth: int = 0) -> tuple[str, frozenset[int] | None] | None:
    """The variable that an expression is, or is a view of, and which of its elements; None where that is not clear."""
    elements: frozenset[int] | None = None
    while not source_text(tensor) or isinstance(tensor, ast.Subscript):
        if isinstance(tensor, ast.Subscript):
            chosen = _chosen(tensor.slice)
            if chosen is None or elements is not None:
                return None
            tensor, elements = tensor.value, chosen
        elif (
            isinstance(tensor, ast.Call)
            and isinstance(tensor.func, ast.Attribute)
            and name_of(tensor) in _VIEWS
        ):
            tensor = tensor.func.value
        else:
            return None
    if isinstance(tensor, ast.Attribute) and tensor.attr in _VIEWS:
        return None if elements is not None else _held(script, tensor.value, depth)
    aliased = _aliased(script, tensor) if depth < _MAX_LIFTS else None
    inner = _held(script, aliased, depth + 1) if aliased is not None else None
    if inner is not None and None in (elements, inner[1]):
        return inner[0], elements or inner[1]
    return source_text(tensor), elements


def _aliased(script: Script, node: ast.expr) -> ast.expr | None:
    """What another name for a tensor was made of, where that one has not been bound anew since."""
    found = script.scopes.reaching(node.id, node) if isinstance(node, ast.Name) else ()
    made = found[0].value if len(found) == 1 and found[0].kind == "assign" and not found[0].path else None
    name = source_text(made) if made is not None else ""
    if made is None or not name:
        return None
    return made if script.scopes.reaching(name, node) == script.scopes.reaching(name, made) else None


def _chosen(index: ast.expr) -> frozenset[int] | None:
    """Elements that an index along the first dimension takes, where it writes them out."""
    if isinstance(index, ast.Slice):
        low = literal(index.lower) if index.lower is not None else 0
        high = literal(index.upper) if index.upper is not None else None
        if index.step is None and isinstance(low, int) and isinstance(high, int) and 0 <= low < high:
            return frozenset(range(low, high))
        return None
    place = literal(index)
    return frozenset([place]) if isinstance(place, int) and place >= 0 else None


def _in_callers(script: Script, one: _Sum) -> Iterator[_Sum]:
    """The same sum as those see it who call its function: in what they gave it, or in what it returns."""
    tree = script.names.tree(one.at)
    function = tree.function(one.at)
    if not isinstance(function, FUNCTIONS) or _touched(tree, one, end(function)):
        return
    bound = tree.definitions.get(function, {}).get(one.variable, [])
    given = len(bound) == 1 and bound[0].kind == "parameter"
    returned = {source_text(r.value) if r.value is not None else "" for r in tree.returns.get(function, ())}
    for site in script.graph.sites(function):
        statement = script.names.tree(site.call).statement(site.call)
        argument = script.graph.bound(site, function, one.variable) if given else None
        held = _held(script, argument) if isinstance(argument, ast.expr) else None
        if held is not None and None in (held[1], one.elements):
            yield replace(one, at=site.call, variable=held[0], elements=held[1] or one.elements)
        elif (
            returned == {one.variable} and isinstance(statement, ast.Assign) and statement.value is site.call
        ):
            names = [source_text(t) for t in statement.targets if isinstance(t, READS)]
            yield from (replace(one, at=site.call, variable=name) for name in names if name)


def _again(script: Script, first: _Sum, second: _Sum) -> bool:
    """Whether the second place adds up what is a sum since the first one."""
    a, b = first.at, second.at
    tree = script.names.tree(a)
    if a is b or tree is not script.names.tree(b) or tree.scope(a) is not tree.scope(b):
        return False
    if first.variable != second.variable or not _overlap(first.elements, second.elements):
        return False
    groups = {ast.unparse(g) if isinstance(g, ast.expr) else "" for g in _groups(script, (first, second))}
    above = start(tree.statement(b))
    return (
        len(groups) == 1
        and script.updates.loops_around(a) == script.updates.loops_around(b)
        and script.updates.together(a, b)
        and not _leaves(tree, a, b)
        and not _touched(tree, first, above)
        and _read(tree, second)
    )


def _overlap(one: frozenset[int] | None, other: frozenset[int] | None) -> bool:
    return one is None or other is None or bool(one & other)


def _groups(script: Script, sums: Iterable[_Sum]) -> Iterator[object]:
    return (script.argument(one.call, "group") for one in sums)


def _leaves(tree: Tree, a: ast.AST, b: ast.AST) -> bool:
    """Whether who comes by one place may go away before the other: `if short: all_reduce(x); return x`."""
    above = tree.parent.get(a)
    while above is not None and not tree.inside(b, above):
        if isinstance(above, ast.If | ast.Try) and any(isinstance(n, _EXITS) for n in walk(above)):
            return True
        above = tree.parent.get(above)
    return False


def _touched(tree: Tree, one: _Sum, above: Place) -> bool:
    """Whether anything up to a place may put other numbers into the tensor, or another tensor under its name."""
    scope, below, name = tree.scope(one.at), end(one.at), one.variable
    for key, made in tree.definitions.get(scope, {}).items():
        same = key == name or key.startswith((f"{name}[", f"{name}."))
        if same and any(below <= start(d.node) < above for d in made):
            return True
    return any(_may_fill(c, name) for c in tree.calls_within(scope) if below <= start(c) < above)


def _may_fill(call: ast.Call, name: str) -> bool:
    """`sums.zero_()`, `refill(sums)`."""
    if isinstance(call.func, ast.Attribute) and source_text(call.func.value) == name:
        return call.func.attr.endswith("_") or call.func.attr == "reset"
    given = arguments_of(call)
    return name_of(call) not in _LOOKING and any(source_text(g) == name for g in given)


def _read(tree: Tree, one: _Sum) -> bool:
    """Whether what comes of a sum is used below it; a measure of speed throws it away."""
    scope = tree.scope(one.at)
    found = (n for n in walk(scope) if isinstance(n, READS) and isinstance(n.ctx, ast.Load))
    return any(start(n) >= end(one.at) and source_text(n) == one.variable for n in found) or (
        isinstance(tree.statement(one.at), ast.Return | ast.Assign)
    )


def _left_out(script: Script, call: ast.Call) -> Fix | None:
    statement = script.names.tree(call).statement(call)
    if not isinstance(statement, ast.Expr) or statement.value is not call:
        return None
    edits = Edits(script)
    edits.remove(statement)
    return edits.fix("Leaves out the second sum over the ranks.")
