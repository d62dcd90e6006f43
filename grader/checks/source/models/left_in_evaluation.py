"""Networks that are switched into evaluation mode between two rounds of training and that nothing switches back.

A round is one of the loop over batches itself or of a loop around it, however many calls lie between. Whoever switches
back anywhere in the round, or where nobody can tell when, counts: a rule that asks prefers silence.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from grader.checks.source.calls.arguments import arguments_of
from grader.checks.source.calls.ways import led_to, ways_to
from grader.checks.source.models.evaluation_mode import named_so
from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax.nodes import (
    FUNCTIONS,
    LOOPS,
    Loop,
    ancestors,
    block_of,
    end,
    names_in,
    start,
    steps_up,
)
from grader.checks.source.training_loops import Draw


@dataclass(frozen=True, slots=True)
class Left:
    """A call of `eval` with no way back.

    Attributes:
        switch: the call. owner: what it is called of. loop: over the batches that are trained on next.
        network: as it is called in that loop, or is written in another method of the same object; None where neither.
        before: calls of `train` that run before the rounds only. within: it is called in that loop itself.
    """

    switch: ast.Call
    owner: ast.expr
    loop: Loop
    network: ast.expr | None
    before: tuple[ast.Call, ...]
    within: bool


@dataclass(frozen=True, slots=True)
class _Rounds:
    """A loop whose rounds train, and what runs in each of them until that is done: calls, or statements of the loop."""

    loop: Loop
    trained: tuple[ast.AST, ...]


@dataclass(frozen=True, slots=True)
class _Switch:
    """A call of `eval` of one network: `place` is where to begin to look who calls it, `most` how far."""

    switch: ast.Call
    owner: ast.expr
    place: ast.Call
    most: int | None


def left_in_evaluation(script: Script) -> Iterator[Left]:
    """Every such call, once."""
    lost = list(_switches(script))
    if not lost or script.called_like(named_so) or script.training.framework:
        return
    told: set[ast.Call] = set()
    for draw in script.training.draws:
        if not draw.trains:
            continue
        rounds, back = list(_rounds(script, draw)), _ways_back(script, draw.loop)
        called = _networks_in(script, draw.loop)
        for one in lost:
            meant = _built(script, one.owner)
            trained = [network for network in called if not meant.isdisjoint(_built(script, network))]
            if one.switch in told or not trained:
                continue
            left = [
                r.loop
                for r in rounds
                if _follows(script, one, r) and not any(_within(script, c, r.loop) for c, _ in back)
            ]
            if left:
                told.add(one.switch)
                before = tuple(c for c, other in back if not meant.isdisjoint(_built(script, other)))
                network = _written_at(script, draw.loop, (one.owner, *trained))
                yield Left(one.switch, one.owner, draw.loop, network, before, within=left[0] is draw.loop)


def _switches(script: Script) -> Iterator[_Switch]:
    """Calls of `eval`; where a helper switches what it is given, its callers say which network that is."""
    for call in script.called("eval"):
        if not isinstance(call.func, ast.Attribute) or call.args:
            continue
        owner, function = call.func.value, script.names.tree(call).function(call)
        given = []
        if isinstance(owner, ast.Name) and function is not None:
            bound = (
                (s.call, script.graph.bound(s, function, owner.id)) for s in script.graph.sites(function)
            )
            given = [
                (place, network) for place, network in bound if network is not None and network is not UNKNOWN
            ]
        yield _Switch(call, owner, call, 0 if given else None)
        yield from (_Switch(call, network, place, None) for place, network in given)


def _rounds(script: Script, draw: Draw) -> Iterator[_Rounds]:
    """The loop over batches, and the innermost loops around it or around calls that lead to it."""
    loop = draw.loop
    yield _Rounds(loop, tuple(s for s in loop.body if script.training.runs_backward(s)))
    places = list(ways_to(script.names, script.graph, loop, goes_on=lambda p: _around(script, p) is None))
    within = [p for p in places if _around(script, p) is None]
    for place in places:
        above = _around(script, place)
        if above is not None:
            yield _Rounds(above, (place, *within))


def _around(script: Script, place: ast.AST) -> Loop | None:
    for above in ancestors(script.names.tree(place).parent, place):
        if isinstance(above, (*LOOPS, *FUNCTIONS)):
            return above if isinstance(above, LOOPS) else None
    return None


def _follows(script: Script, one: _Switch, rounds: _Rounds) -> bool:
    """Whether a switch runs in a round after its training, and another round may come."""
    loop = rounds.loop
    home = script.names.tree(loop).function(loop), script.names.tree(loop)
    for place in _ways(script, one.place, loop, one.most):
        tree = script.names.tree(place)
        here = tree.function(place), tree
        inside = tree.inside(place, loop)
        beside = (
            p for p in rounds.trained if (script.names.tree(p).function(p), script.names.tree(p)) == here
        )
        after = any(start(place) > end(trained) for trained in beside)
        if after and (not _is_last(script, place, loop) if inside else here != home):
            return True
    return False


def _ways(script: Script, call: ast.Call, loop: Loop, most: int | None = None) -> Iterator[ast.AST]:
    """A call and those that lead to it, up to the function that a loop stands in."""
    tree = script.names.tree(loop)
    home = tree.function(loop)

    def elsewhere(place: ast.AST) -> bool:
        other = script.names.tree(place)
        return other is not tree or other.function(place) is not home

    return ways_to(script.names, script.graph, call, most=most, goes_on=elsewhere)


def _within(script: Script, call: ast.Call, loop: Loop) -> bool:
    """Whether a call may run within a loop."""
    for place in _ways(script, call, loop):
        tree = script.names.tree(place)
        if tree.inside(place, loop):
            return True
        function = tree.function(place)
        if function is None or function is script.names.tree(loop).function(loop):
            continue
        # Nobody is seen to call it: a callback, a hook, a method of an object that nobody knows.
        if not script.graph.sites(function) and script.may_run(place):
            return True
    return False


def _is_last(script: Script, place: ast.AST, loop: Loop) -> bool:
    """Whether a round that comes here is the last one: it leaves the loop, or is asked for by its number."""
    tree = script.names.tree(place)
    counted = names_in(loop.target) if not isinstance(loop, ast.While) else ()
    for child, above in steps_up(tree.parent, place):
        last = block_of(tree.parent, child)[-1:]
        if any(isinstance(s, ast.Break | ast.Return | ast.Raise) for s in last):
            return True
        if above is loop:
            return False
        if isinstance(above, ast.If) and any(_equals(n, counted) for n in ast.walk(above.test)):
            return True
    return False


def _equals(node: ast.AST, counted: Iterable[str]) -> bool:
    if not isinstance(node, ast.Compare) or not all(isinstance(op, ast.Eq) for op in node.ops):
        return False
    inner = list(ast.walk(node))
    return any(isinstance(n, ast.Name) and n.id in counted for n in inner) and not any(
        isinstance(n, ast.Mod) for n in inner
    )


def _ways_back(script: Script, loop: Loop) -> list[tuple[ast.Call, ast.expr]]:
    """Calls of `train` that may switch a network back, with what they are called of.

    A trainer's own `train` leads to the loop.
    """
    leading = {script.names.tree(p).function(p) for p in ways_to(script.names, script.graph, loop)}
    found = []
    for call in script.called("train"):
        given = arguments_of(call)
        on = not given or script.values.constant(given[0]) is not False
        if isinstance(call.func, ast.Attribute) and on and leading.isdisjoint(script.graph.targets(call)):
            found.append((call, call.func.value))
    return found


def _networks_in(script: Script, loop: Loop) -> list[ast.expr]:
    """Networks that are called in a loop, and in all functions that it leads to."""
    own = script.names.tree(loop).calls_within(loop)
    first = {target for call in own for target in script.graph.targets(call)}
    inner = led_to(script.names, script.graph, first.__contains__)
    calls = [*own, *(c for f in inner for c in script.names.tree(f).calls_within(f))]
    return [network for call in calls if (network := script.networks.called(call)) is not None]


def _built(script: Script, network: ast.expr) -> set[ast.AST]:
    """Where a network may come from, and what it is wrapped around."""
    held = network.value if isinstance(network, ast.Attribute) and network.attr == "module" else network
    found: set[ast.AST] = set()
    work = list(script.values.origins(held))
    while work:
        origin = work.pop()
        if origin in found:
            continue
        found.add(origin)
        if isinstance(origin, ast.Call) and origin in script.training.wraps:
            inner = script.argument(origin, "module")
            work += script.values.origins(inner) if inner is not None else ()
    return found


def _written_at(script: Script, loop: Loop, networks: Iterable[ast.expr]) -> ast.expr | None:
    """One of these, all of them the same network, that is there under its name in a loop's function."""
    tree = script.names.tree(loop)
    for network in networks:
        if script.names.tree(network) is not tree:
            continue
        own = isinstance(network, ast.Attribute) and ast.unparse(network.value) == "self"
        same_object = own and tree.enclosing_class(network) is tree.enclosing_class(loop)
        if same_object or tree.scope(network) is tree.scope(loop):
            return network
    return None
