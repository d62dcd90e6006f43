"""Steps of the optimizer that a test of the rank keeps from some ranks, after a backward pass that all of them make.

Silent where the script sends gradients or weights by hand: one rank may step for all then.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.source.ranks.guard_fixes import out_of_test
from grader.checks.source.script import Script
from grader.model.fix import Fix


@dataclass(frozen=True, slots=True)
class LoneStep:
    """One such step: `says` follows a place, such as `train.py:7`."""

    node: ast.Call
    says: str
    hint: str
    fix: Fix | None


def lone_steps(script: Script) -> Iterable[LoneStep]:
    """All of them, in the order of the text."""
    if script.averaging.sent_by_hand or any(
        script.argument(w, "process_group") for w in script.training.wraps
    ):
        return
    for step in script.updates.steps:
        guard = script.replicas.on_some_ranks(step)
        if guard is not None and guard.condition.sure and _all_go_backward(script, step):
            yield LoneStep(
                step,
                f"steps on some ranks only ({script.quote(guard.test)}), although all of them go backward. The weights "
                "of the others stay as they are, and gradients are then averages of gradients of different models.",
                "Let every rank step: DDP gives all of them the same gradients, so their weights stay equal.",
                out_of_test(script, step, "Steps on every rank."),
            )


def _all_go_backward(script: Script, step: ast.Call) -> bool:
    passes = [
        entry
        for loop in script.updates.rounds(step, script.training.backwards)
        for entry in script.updates.entries(loop, script.training.backwards)
    ]
    return bool(passes) and all(script.replicas.on_some_ranks(entry) is None for entry in passes)
