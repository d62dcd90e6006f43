"""Where messages go around a ring: the loops that send, lap by lap, and what chooses the chunk that each one sends.

Asked only where a scorer has seen which lap went wrong; it says where, and decides nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from grader.checks.source.metrics.recorded_losses import Cause
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import LOOPS, ancestors, start

_SENDS = ("isend", "send", "P2POp", "send_object_list")
_MAX_DEPTH = 3


def first_lap(script: Script) -> Cause | None:
    """What the first lap's messages carry, and where they are added up."""
    return _lap(script, 0)


def second_lap(script: Script) -> Cause | None:
    """What the second lap's messages carry; of one loop for both laps, what that does."""
    return _lap(script, -1)


def _lap(script: Script, number: int) -> Cause | None:
    loops = sorted(dict.fromkeys(loop for _, loop in _sends(script)), key=start)
    if not loops:
        return None
    loop = loops[number]
    tree = script.names.tree(loop)
    chosen: list[ast.AST] = []
    for call, around in _sends(script):
        for part in ast.walk(call) if around is loop else ():
            if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Load):
                made = [o for o in script.values.origins(part.slice) if isinstance(o, ast.BinOp | ast.Call)]
                inside = [tree.statement(o) for o in made if script.names.knows(o) and tree.inside(o, loop)]
                chosen += inside or [tree.statement(part)]
    return Cause(tuple(dict.fromkeys((*chosen[:2], loop.iter if isinstance(loop, ast.For) else loop))), "")


def _sends(script: Script) -> Iterator[tuple[ast.Call, ast.For | ast.AsyncFor | ast.While]]:
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
