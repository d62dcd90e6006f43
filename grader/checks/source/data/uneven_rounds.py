"""Training loops that the text itself makes longer on some ranks than on others, and their numbers without the rank."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.causes import names_rank
from grader.checks.source.data.rank_dependent_shares import differs
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import LOOPS, loop_above
from grader.checks.source.training_loops import Draw
from grader.model.fix import Fix


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


def equal_rounds(script: Script, node: ast.AST) -> tuple[str, Fix | None]:
    """What to write for a bound of a loop that differs by rank, and the edit; "" where that is not plain."""
    for part in ast.walk(_bounds(node)):
        kept: ast.expr | None = None
        if isinstance(part, ast.IfExp) and names_rank(script, part.test):
            kept = part.orelse
        elif isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add | ast.Sub):
            left, right = names_rank(script, part.left), names_rank(script, part.right)
            kept = (
                part.left
                if right and not left
                else part.right
                if left and isinstance(part.op, ast.Add)
                else None
            )
        if kept is not None and isinstance(part, ast.expr) and not names_rank(script, kept):
            edits = Edits(script)
            edits.replace(part, edits.text(kept))
            return edits.text(kept), edits.fix("Lets all ranks go through the loop equally often.")
    return "", None


def _bounds(node: ast.AST) -> ast.AST:
    if isinstance(node, LOOPS):
        return node.test if isinstance(node, ast.While) else node.iter
    return node


def runs_dry_alone(script: Script) -> bool:
    """Whether DDP's `join()` lets ranks stop at different steps."""
    return bool(script.mentioned("Join")) or any(
        isinstance(n, ast.Attribute) and script.training.wrapped(n.value) for n in script.mentioned("join")
    )
