"""Steps between `zero_grad` and `backward`: they find no gradient, whatever the optimizer holds."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.source.edits import Edits
from grader.checks.source.script import Script
from grader.checks.source.syntax_nodes import LOOPS, name_of
from grader.model.fix import Fix


@dataclass(frozen=True, slots=True)
class EarlyStep:
    """One of them, with the backward pass that comes after it; `says` is a sentence."""

    step: ast.Call
    backward: ast.Call
    says: str
    hint: str
    fix: Fix | None


def steps_before_backward(script: Script) -> Iterable[EarlyStep]:
    """Those of loops that clear the gradients, step, and go backward only then, all three as plain statements."""
    for step in script.updates.steps:
        tree = script.names.tree(step)
        statement = tree.statement(step)
        above = tree.parent.get(statement)
        if not isinstance(above, LOOPS) or not isinstance(statement, ast.Expr) or statement not in above.body:
            continue
        index = above.body.index(statement)
        before = [_called(one) for one in above.body[:index]]
        calls = (call for one in above.body[index + 1 :] if (call := _call(one)) is not None)
        backward = next((call for call in calls if name_of(call) == "backward"), None)
        held = any(tree.inside(b, one) for b in script.training.backwards for one in above.body[:index])
        if "zero_grad" not in before or held or backward is None:
            continue
        edits = Edits(script)
        text = edits.text(step)
        edits.remove(statement)
        edits.after(tree.statement(backward), text)
        yield EarlyStep(
            step,
            backward,
            f"The gradients were cleared before it, and `backward` comes only after it, at {script.at(backward)}.",
            f"Move `{text}` below {script.quote(backward)} ({script.at(backward)}).",
            edits.fix("Steps after the backward pass."),
        )


def _call(statement: ast.stmt) -> ast.Call | None:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return value if isinstance(value, ast.Call) else None


def _called(statement: ast.stmt) -> str:
    call = _call(statement)
    return name_of(call) if call is not None else ""
