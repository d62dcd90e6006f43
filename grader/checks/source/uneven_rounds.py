"""Training loops that the text itself makes longer on some ranks than on others."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.rank_dependent_shares import differs
from grader.checks.source.script import Script
from grader.checks.source.syntax_nodes import loop_above
from grader.checks.source.training_loops import Draw


def uneven_rounds(script: Script) -> Iterable[tuple[ast.AST, str]]:
    """Places that do it, each with a sentence that says how."""
    for draw in script.training.draws:
        if draw.trains:
            yield from _unequal_steps(script, draw)
    yield from _unequal_rounds(script)


def _unequal_steps(script: Script, draw: Draw) -> Iterable[tuple[ast.AST, str]]:
    tree = script.names.tree(draw.loop)
    for leave in tree.exits:
        guard = script.guards.partial(leave)
        inside = guard is not None and tree.inside(guard.test, draw.loop)
        if (
            guard is None
            or not inside
            or not guard.condition.sure
            or loop_above(tree.parent, leave) is not draw.loop
        ):
            continue
        if any(script.sharding.by_rank(n) for n in ast.walk(guard.test)):
            continue  # `if step % world != rank: continue` deals the batches out
        word = "break" if isinstance(leave, ast.Break) else "continue"
        text = f"{script.at(leave)} leaves the training step with `{word}` under {script.quote(guard.test)}"
        yield leave, f"{text}, on some ranks only."
    if isinstance(draw.loop, ast.While):
        return
    for call in tree.calls_within(draw.loop.iter):
        bounds_loop = script.names.qualified(call.func) in ("range", "itertools.islice")
        if bounds_loop and any(differs(script, a) for a in call.args):
            text = f"{script.at(call)} bounds the training loop by the rank: {script.quote(call)}."
            yield call, text


def _unequal_rounds(script: Script) -> Iterable[tuple[ast.AST, str]]:
    """Loops around training that some ranks go through more often: `while epoch < epochs - rank`."""
    drawn = [draw.loop for draw in script.training.draws]
    for tree in script.trees:
        for loop in tree.loops:
            if loop in drawn or not script.updates.entries(loop, script.training.backwards):
                continue
            bounds: list[ast.expr] = []
            if isinstance(loop, ast.While) and isinstance(loop.test, ast.Compare):
                bounds = [loop.test.left, *loop.test.comparators]
            elif not isinstance(loop, ast.While) and isinstance(loop.iter, ast.Call):
                bounds = loop.iter.args if script.names.qualified(loop.iter.func) == "range" else []
            told = next((b for b in bounds if not isinstance(b, ast.Starred) and differs(script, b)), None)
            if told is not None and script.guards.partial(loop) is None:
                text = f"{script.at(loop)} goes on for more rounds on some ranks than on others: {script.quote(told)}."
                yield told, text
