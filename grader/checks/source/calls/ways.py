"""What leads to a line, and in which order functions can be judged, however many ways there are through the calls.

The ways through a call graph are as many as the paths in it: thirty functions that call each other have millions. So
nothing here goes each way. A function is entered once, and functions that call each other in a circle are taken
together.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Set

from grader.checks.source.calls.sites import Calls, CallSite
from grader.checks.source.libraries.names import Names
from grader.checks.source.syntax.nodes import FUNCTIONS, Function, walk


def ways_to(
    names: Names,
    calls: Calls,
    node: ast.AST,
    *,
    most: int | None = None,
    goes_on: Callable[[ast.AST], object] = lambda _node: True,
    by: Callable[[CallSite, ast.AST], object] = lambda _site, _function: True,
) -> Iterator[ast.AST]:
    """A node and the calls that lead to it, nearest first: those of its function, those of their functions.

    Args:
        names, calls: of the script.
        node: where the ways end.
        most: how many calls may lie one behind the other.
        goes_on: whether what calls a node's function is wanted, too; asked once the node has been given.
        by: whether a way may come by this place that runs this function.
    """
    work = deque([(node, 0)])
    entered: set[ast.AST] = set()
    while work:
        place, depth = work.popleft()
        yield place
        function = names.tree(place).function(place)
        if function is None or function in entered or depth == most or not goes_on(place):
            continue
        entered.add(function)
        work.extend((s.call, depth + 1) for s in calls.sites(function) if by(s, function))


def leading_to(names: Names, calls: Calls, nodes: Iterable[ast.AST]) -> set[ast.AST]:
    """Functions in which one of these nodes stands, or that call such a function."""
    found: set[ast.AST] = set()
    work = [names.tree(node).function(node) for node in nodes]
    while work:
        function = work.pop()
        if function is not None and function not in found:
            found.add(function)
            work.extend(names.tree(site.call).function(site.call) for site in calls.sites(function))
    return found


def runs(calls: Calls, node: ast.AST, wanted: Set[ast.AST], most: int) -> bool:
    """Whether a node makes one of these calls, itself or in a function that it calls, `most` of them deep."""
    made = [part for part in walk(node) if isinstance(part, ast.Call)]
    if not wanted.isdisjoint(made):
        return True
    inner = (target for call in made for target in calls.targets(call)) if most else ()
    bodies = (target.body for target in inner if isinstance(target, FUNCTIONS))
    return any(runs(calls, statement, wanted, most - 1) for body in bodies for statement in body)


def led_to(
    names: Names,
    calls: Calls,
    first: Callable[[Function], object],
    by: Callable[[CallSite, ast.AST], object] = lambda _site, _function: True,
) -> set[ast.AST]:
    """Functions that are `first`, and all to which ways lead from there.

    `by`: whether a way may come by this place that runs this function.
    """
    work: list[ast.AST] = [function for function in calls.functions if first(function)]
    inner: dict[ast.AST, list[ast.AST]] = {}
    for function in calls.functions:
        for site in calls.sites(function):
            around = names.tree(site.call).function(site.call)
            if around is not None and by(site, function):
                inner.setdefault(around, []).append(function)
    found: set[ast.AST] = set()
    while work:
        one = work.pop()
        if one not in found:
            found.add(one)
            work.extend(inner.get(one, ()))
    return found


def led_to_only(names: Names, calls: Calls, by: Callable[[ast.AST], object]) -> set[ast.AST]:
    """Functions that are called somewhere, and to which no way leads but by a call of that kind.

    A function that calls itself by another one is not among them, nor are those of a circle.
    """
    inner: dict[ast.AST, list[ast.AST]] = {}
    others: dict[ast.AST, int] = {}
    work: list[ast.AST] = []
    for function in calls.functions:
        sites = calls.sites(function)
        rest = [s.call for s in sites if not by(s.call)]
        others[function] = len(rest)
        for call in rest:
            around = names.tree(call).function(call)
            if around is not None:
                inner.setdefault(around, []).append(function)
        if sites and not rest:
            work.append(function)
    found: set[ast.AST] = set()
    while work:
        one = work.pop()
        found.add(one)
        for called in inner.get(one, ()):
            others[called] -= 1
            if not others[called]:
                work.append(called)
    return found


def circles(
    functions: Iterable[ast.AST], called: Callable[[ast.AST], Iterable[ast.AST]]
) -> list[tuple[ast.AST, ...]]:
    """All functions in groups, callees before their callers; those of a group call each other in a circle.

    Most groups are of one function. (Tarjan's algorithm, without recursion: a chain of calls may be long.)
    """
    order = {function: number for number, function in enumerate(functions)}
    lowest: dict[ast.AST, int] = {}
    waiting: dict[ast.AST, int] = {}
    found: list[tuple[ast.AST, ...]] = []
    work: list[tuple[ast.AST, Iterator[ast.AST]]] = []

    def enter(function: ast.AST) -> None:
        lowest[function] = waiting[function] = len(lowest)
        work.append((function, iter(called(function))))

    for one in order:
        if one not in lowest:
            enter(one)
        while work:
            function, rest = work[-1]
            callee = next((c for c in rest if c in order and (c not in lowest or c in waiting)), None)
            if callee is None:
                work.pop()
                if work:
                    above = work[-1][0]
                    lowest[above] = min(lowest[above], lowest[function])
                if lowest[function] == waiting[function]:
                    group = [waiting.popitem()[0]]
                    while group[-1] is not function:
                        group.append(waiting.popitem()[0])
                    found.append(tuple(sorted(group, key=order.__getitem__)))
            elif callee in waiting:
                lowest[function] = min(lowest[function], waiting[callee])
            else:
                enter(callee)
    return found
