"""Exchanges of gradients that are only started: `async_op=True`, and nobody waits for them all before the step.

A step in between takes what is there by chance. Claims nothing where a wait may come in time.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.calls.ways import runs
from grader.checks.source.causes import CauseInText
from grader.checks.source.collectives.collective_calls import REDUCING
from grader.checks.source.gradients.updates import reads_gradient
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import Loop, literal, loop_above, walk
from grader.checks.source.values.temporary_tensors import runs_on

_MAX_DEPTH = 4


def late_wait(script: Script) -> CauseInText | None:
    """The first one whose wait stands below the step of its round, nowhere, or for the last of many alone."""
    started = [c for c in script.calls(*REDUCING) if _is_started(script, c)]
    if not started:
        return None
    first, waits = started[0], [c for c in script.called("wait") if isinstance(c.func, ast.Attribute)]
    says = f"{script.at(first)} only starts the exchange (`async_op=True`)"
    if not waits and not script.called("synchronize", "wait_all", "waitall"):
        kept = (
            "Keep what the call returns, and call its `wait()` before the step; or leave `async_op=True` out."
        )
        return CauseInText((first,), f"{says}, and nothing waits for its end.", kept)
    unkept = next((one for c in started if (one := _last_alone(script, c, waits))), None)
    if unkept is not None:
        return unkept
    own = {script.names.tree(c).function(c) for c in started}
    if any(script.names.tree(w).function(w) in own for w in waits):
        return None
    for draw in script.training.draws:
        found = _below_the_step(script, draw.loop, waits) if draw.trains else None
        if found is not None:
            backward, step, wait = found
            return CauseInText(
                (wait, first, step),
                f"{says}, and {script.at(wait)} waits for its end below the step at {script.at(step)}: the step takes "
                "gradients that are not added up yet.",
                f"Move {script.quote(wait)} from {script.at(wait)} right behind {script.quote(backward)} at "
                f"{script.at(backward)}.",
            )
    return None


def _last_alone(script: Script, call: ast.Call, waits: list[ast.Call]) -> CauseInText | None:
    """Handles of many exchanges of which one alone is waited for: a name that each round of a loop gives anew."""
    tree = script.names.tree(call)
    statement = tree.statement(call)
    kept = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    if not isinstance(statement, ast.Assign) or not isinstance(kept, ast.Name):
        return None
    read = [
        n
        for n in walk(tree.scope(call))
        if isinstance(n, ast.Name) and n.id == kept.id and isinstance(n.ctx, ast.Load)
    ]
    loop = loop_above(tree.parent, statement)
    if statement.value is call and loop is not None and not any(tree.inside(n, loop) for n in read):
        waited = [w for w in waits if isinstance(w.func, ast.Attribute) and w.func.value in read]
        hint = (
            f"Keep every handle: `{kept.id}s = []` above {script.at(loop)}, `{kept.id}s.append({ast.unparse(call)})` "
            f"in its rounds, and below it `for {kept.id} in {kept.id}s:` with `{kept.id}.wait()` in it."
        )
    elif isinstance(statement.value, ast.ListComp) and statement.value.elt is call:
        waited = [w for w in waits if isinstance(w.func, ast.Attribute) and _picks_one(w.func.value, read)]
        hint = f"Wait for each of them: `for handle in {kept.id}:` with `handle.wait()` in it."
    else:
        return None
    if not waited or len(read) != len(waited):
        return None
    return CauseInText(
        (waited[0], call),
        f"{script.at(call)} starts an exchange for each gradient (`async_op=True`), and {script.at(waited[0])}, "
        f"{script.quote(waited[0])}, waits for one of them alone: a step may take gradients whose sums have not "
        "arrived.",
        hint,
    )


def _picks_one(node: ast.expr, read: list[ast.Name]) -> bool:
    """`handles[-1]`."""
    return isinstance(node, ast.Subscript) and node.value in read and isinstance(literal(node.slice), int)


def _is_started(script: Script, call: ast.Call) -> bool:
    """Whether a call starts the exchange of a gradient and goes on."""
    given = script.argument(call, "tensor")
    of_gradient = isinstance(given, ast.expr) and any(map(reads_gradient, script.values.closure(given)))
    return of_gradient and runs_on(script, call)


def _below_the_step(
    script: Script, loop: Loop, waits: list[ast.Call]
) -> tuple[ast.stmt, ast.stmt, ast.stmt] | None:
    """The statements of a round that go backward, step and wait, where all waits come after the step."""
    backward = _leading(script, loop, script.training.backwards)
    step = _leading(script, loop, script.updates.steps)
    wait = _leading(script, loop, waits)
    if not (backward and step and wait):
        return None
    above, below = loop.body.index(step[0]), loop.body.index(wait[0])
    return (backward[-1], step[0], wait[0]) if loop.body.index(backward[-1]) < above < below else None


def _leading(script: Script, loop: Loop, calls: Iterable[ast.Call]) -> list[ast.stmt]:
    wanted = set(calls)
    return [s for s in loop.body if runs(script.graph, s, wanted, _MAX_DEPTH)]
