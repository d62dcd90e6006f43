"""Exchanges of gradients that are only started: `async_op=True`, and nobody waits for them before the step.

A step in between takes what is there by chance. Claims nothing where a wait may come in time.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.causes import CauseInText
from grader.checks.source.collectives import REDUCING
from grader.checks.source.script import Script
from grader.checks.source.syntax_nodes import FUNCTIONS, Loop, walk

_MAX_DEPTH = 4


def late_wait(script: Script) -> CauseInText | None:
    """The first one whose wait stands below the step of its round, or nowhere."""
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


def _is_started(script: Script, call: ast.Call) -> bool:
    """Whether a call starts the exchange of a gradient and goes on."""
    given = script.argument(call, "tensor")
    of_gradient = isinstance(given, ast.expr) and any(
        isinstance(n, ast.Attribute) and n.attr == "grad" for n in script.values.closure(given)
    )
    return of_gradient and script.values.constant(script.argument(call, "async_op")) is True


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
    return [s for s in loop.body if _leads(script, s, wanted, 0)]


def _leads(script: Script, node: ast.AST, wanted: set[ast.Call], depth: int) -> bool:
    """Whether a node runs one of these calls, itself or in a function that it calls."""
    made = [n for n in walk(node) if isinstance(n, ast.Call)]
    if not wanted.isdisjoint(made):
        return True
    inner = (t for c in made for t in script.graph.targets(c)) if depth < _MAX_DEPTH else ()
    return any(
        isinstance(t, FUNCTIONS) and any(_leads(script, s, wanted, depth + 1) for s in t.body) for t in inner
    )
