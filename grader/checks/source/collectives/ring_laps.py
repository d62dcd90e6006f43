"""Where messages go around a ring: the loops that send, lap by lap, and what chooses the chunk that each one sends.

Asked only where a scorer has seen which lap went wrong; it says where and what to write, and decides nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TypeAlias

from grader.checks.source.collectives.lap_rounds import rounds
from grader.checks.source.metrics.recorded_losses import Cause
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import LOOPS, ancestors, name_of, start

_SENDS = ("isend", "send", "P2POp", "send_object_list")
_MAX_DEPTH = 3
_PLACE = "In each round what comes takes the place of what is there."
_BEGIN = (
    "Begin the second lap with the chunk that this rank has finished, the one that it added to last: "
    f"`(rank + 1) % world_size` where it sent chunk `rank` first. {_PLACE}"
)
_ADD = "In each round of the first lap add what comes to this rank's own numbers."
_TELL = (
    "Go around once more, `world_size - 1` rounds: first each rank passes on the chunk that it has finished, "
    f"`(rank + 1) % world_size` where it sent chunk `rank` first, and then the one that came last. {_PLACE}"
)

Loop: TypeAlias = ast.For | ast.AsyncFor | ast.While


def lap_cause(script: Script, said: str) -> Cause | None:
    """What a sentence about a lap is about, with what to write; None for others."""
    find = next((find for words, find in _FAULTS if words in said), None)
    return find(script) if find is not None else None


def _own_parts(script: Script) -> Cause:
    loops = _loops(script)
    replaced = (
        _replaces(script, loops[0]) if len(loops) > 1 and not any(_adds(script, o) for o in loops) else []
    )
    if replaced:
        return Cause((replaced[0], *_choosing(script, loops[0])), _ADD)
    return Cause(_choosing(script, loops[-1]) if loops else (), _BEGIN)


def _second_adds(script: Script) -> Cause:
    loops = _loops(script)
    added = _adds(script, loops[-1]) if len(loops) > 1 else []
    advice = f"Only the first lap adds. {_PLACE.replace('each round', 'each round of the second')}"
    return Cause((*added[:1], *(_choosing(script, loops[-1]) if loops else ())), advice)


def _no_second(script: Script) -> Cause:
    loops = _loops(script)
    return Cause((_head(loops[-1]),) if loops else (), _TELL)


def _first_short(script: Script) -> Cause:
    return _short(script, 0)


def _second_short(script: Script) -> Cause:
    return _short(script, -1)


def _short(script: Script, number: int) -> Cause:
    loops = _loops(script)
    if not loops:
        return Cause((), rounds(script, None, 1))
    return Cause((_head(loops[number]),), rounds(script, loops[number], 2 if len(loops) == 1 else 1))


_FAULTS: tuple[tuple[str, Callable[[Script], Cause]], ...] = (
    ("the first lap is one round too short", _first_short),
    ("the second lap is one round too short", _second_short),
    ("without a second lap", _no_second),
    ("the second lap adds", _second_adds),
    ("begins the second lap with", _own_parts),
)
"""Words of the scorer's sentences, and what finds the line."""


def _loops(script: Script) -> list[Loop]:
    return sorted(dict.fromkeys(loop for _, loop in _sends(script)), key=start)


def _head(loop: Loop) -> ast.expr:
    return loop.test if isinstance(loop, ast.While) else loop.iter


def _choosing(script: Script, loop: Loop) -> tuple[ast.AST, ...]:
    """What picks the chunk that a lap's messages carry, and the lap's loop."""
    tree = script.names.tree(loop)
    chosen: list[ast.AST] = []
    for call, around in _sends(script):
        for part in ast.walk(call) if around is loop else ():
            if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Load):
                made = [o for o in script.values.origins(part.slice) if isinstance(o, ast.BinOp | ast.Call)]
                inside = [tree.statement(o) for o in made if script.names.knows(o) and tree.inside(o, loop)]
                chosen += inside or [tree.statement(part)]
    return tuple(dict.fromkeys((*chosen[:2], _head(loop))))


def _adds(script: Script, loop: Loop) -> list[ast.AST]:
    """Where tensors are added up in a loop, or in what it calls: `a += b`, `a.add_(b)`, `a + b` of two tensors."""
    found: list[ast.AST] = []
    for tree in script.trees:
        for node in ast.walk(tree.root):
            if isinstance(node, ast.AugAssign):
                adds = isinstance(node.op, ast.Add) and not isinstance(node.value, ast.Constant)
            elif isinstance(node, ast.BinOp):
                sides = (node.left, node.right)
                adds = isinstance(node.op, ast.Add) and all(
                    isinstance(s, ast.Subscript | ast.Name) for s in sides
                )
                adds = adds and not any(script.ranks.rank(s) or script.ranks.world(s) for s in sides)
            else:
                adds = isinstance(node, ast.Call) and name_of(node) in ("add_", "add")
            if adds:
                found.append(node)
    return list(script.updates.entries(loop, found))


def _replaces(script: Script, loop: Loop) -> list[ast.AST]:
    """Where something takes the place of numbers in a loop, or in what it calls: `a[i] = b`, `a.copy_(b)`."""
    found: list[ast.AST] = list(script.called("copy_"))
    for tree in script.trees:
        assigned = (n for n in ast.walk(tree.root) if isinstance(n, ast.Assign))
        found += [n for n in assigned if any(isinstance(target, ast.Subscript) for target in n.targets)]
    return list(script.updates.entries(loop, found))


def _sends(script: Script) -> Iterator[tuple[ast.Call, Loop]]:
    """Calls that send a message, or a helper that does, with the loop that they stand in."""
    todo: list[tuple[ast.Call, int]] = [(call, 0) for call in script.called(*_SENDS)]
    seen: set[ast.AST] = set()
    while todo:
        call, depth = todo.pop(0)
        if call in seen:
            continue
        seen.add(call)
        tree = script.names.tree(call)
        function = tree.function(call)
        loop = next((n for n in ancestors(tree.parent, call) if isinstance(n, LOOPS) or n is function), None)
        if isinstance(loop, ast.For | ast.AsyncFor | ast.While):
            yield call, loop
        elif function is not None and depth < _MAX_DEPTH:
            todo += [(site.call, depth + 1) for site in script.graph.sites(function)]
