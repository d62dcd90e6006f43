"""The loss has no gradient to follow.

## What happened
`backward()` or the wrapper found nothing that requires a gradient.

## Why
Gradients flow only through operations on parameters that require them, so `torch.no_grad()`, `.detach()`,
`.item()` or a frozen model leave nothing to average.

## Mend it
Check that the training step runs outside `no_grad`, that the loss comes from the wrapped model's output, and
that parameters are frozen on purpose only.
"""

from __future__ import annotations

import ast
import re

from grader.checks.phrases import place
from grader.checks.run.endings.failed_run import FailedRun
from grader.checks.source.causes import went_backward
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import name_of
from grader.model.diagnosis import Diagnosis

ORDER = 40
_OFF = ("no_grad", "inference_mode")
_WORDS = re.compile(
    r"does not require grad and does not have a grad_fn"
    r"|DistributedDataParallel is not needed when a module doesn't have any parameters that require a gradient"
)


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the first exception says so."""
    if run.saying(_WORDS) is None:
        return None
    cause, said = _without(run.evidence.script)
    return run.crash(
        title="The loss has no gradient to follow",
        what=f"asked for gradients where there are none (“{run.words}”)",
        why=(
            "Gradients flow only through operations on parameters that require them, so "
            "`torch.no_grad()`, `.detach()`, `.item()` or a frozen model leave nothing to "
            "average"
        ),
        where=(
            *((run.evidence.script.location(cause),) if cause is not None else ()),
            *place(run.cause.site if run.cause else None),
        ),
        hint=said
        or (
            "Check that the training step runs outside `no_grad`, that the loss comes from the "
            "wrapped model's output, and that parameters are frozen on purpose only."
        ),
    )


def _without(script: Script) -> tuple[ast.AST | None, str]:
    """What keeps gradients from the loss that goes backward, and what to do about it."""
    for backward in script.training.backwards:
        for forward in script.updates.forwards(backward):
            tree = script.names.tree(forward)
            for block in tree.withs:
                context = next((i.context_expr for i in block.items if name_of(i.context_expr) in _OFF), None)
                if context is not None and any(tree.inside(forward, s) for s in block.body):
                    return block, (
                        f"Take {script.quote(forward)} ({script.at(forward)}) out of the block of "
                        f"{script.quote(context)} at {script.at(block)}: what runs in it has no gradient."
                    )
        for node in went_backward(script):
            cut = next(
                (
                    c
                    for c in script.values.closure(node)
                    if isinstance(c, ast.Call) and name_of(c) == "detach"
                ),
                None,
            )
            if cut is not None:
                return cut, f"Leave `.detach()` out at {script.at(cut)}: what it gives has no gradient."
    return None, ""
