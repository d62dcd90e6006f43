"""Gradients are cleared before they have accumulated, or their sum is not made a mean.

## What it finds
Gradient accumulation that clears the gradients at every micro-batch, so that only the last one before each step counts;
losses that are divided by another number than that of the micro-batches; and, as hints, accumulation in which nothing
divides by it, and micro-batches that an epoch leaves over, whose gradients get into the next one's first step.

## Why it matters
Cleared too early, most of the data is computed on and thrown away: the step is that of one micro-batch, at the price of
all. Undivided, the gradient is as many times too large as there are micro-batches, and the learning rate does not fit.

## Example
```python
from torch.nn.parallel import DistributedDataParallel

model = DistributedDataParallel(build_model())
for i, (images, labels) in enumerate(train_loader):
    optimizer.zero_grad()
    loss = loss_of(model(images), labels) / 4
    loss.backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
```

## Use instead
```python
from torch.nn.parallel import DistributedDataParallel

model = DistributedDataParallel(build_model())
for i, (images, labels) in enumerate(train_loader):
    loss = loss_of(model(images), labels) / 4
    loss.backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
```

## How it is seen
In the source, by a step that only every n-th round reaches while every round clears, and under Accelerate by a loss
that is divided twice, or a number of micro-batches with nothing that accumulates; the run confirms it where each
backward pass between two steps found all gradients empty. Where the text shows no clearing, the run tells it alone:
each pass gave gradients that the next one found cleared, no weight had changed in between, and the text has no other
use for gradients (of inputs, in hooks, read by hand), as attacks have that clear on purpose. Under DDP also by a loss
that is divided by the number of ranks, alone or beside that of the micro-batches, or by another constant alone; the run
tells what part of the mean went backward, and how often. What an epoch leaves over shows in steps with more backward
passes than the others have, over the end of a pass through the loader, that began with empty gradients once. Silent
where anything else may make up for it: scaled gradients, hooks, a learning rate that is reckoned out.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import at, first_known, place, ranks, told_once
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.causes import lines
from grader.checks.source.gradients.discarded_gradients import clear_once, cleared_each_round, other_use
from grader.checks.source.gradients.loss_divisors import changes_gradients, never_divides, wrong_divisors
from grader.checks.source.libraries.framework_words import ACCELERATE
from grader.checks.source.script import Script
from grader.model.finding import Severity
from grader.model.grade import State

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.WARNING
_ADDED = "Backward passes between two steps added to each other's gradients."


def check_source(script: Script) -> Iterable[Hit]:
    """Flag accumulation that clears in every round, or that never divides."""
    if script.frameworks.words is ACCELERATE:
        yield from _of_accelerate(script)
    if script.training.framework or not script.mentions_distributed:
        return
    for accumulation in script.accumulations.all:
        if (clear := cleared_each_round(script, accumulation)) is not None:
            yield Hit(
                message=f"{script.at(clear)} clears the gradients at every micro-batch, although "
                f"{script.at(accumulation.step)} steps only after several. Each step sees the last micro-batch alone; "
                "the others were computed for nothing.",
                hint=clear_once(script, accumulation, clear),
                where=(script.location(clear),),
            )
        elif never_divides(script, accumulation):
            backward = accumulation.backward
            yield Hit(
                message=f"{script.at(backward)} adds up gradients of several micro-batches, and nothing divides them "
                f"by {script.quote(accumulation.every) if accumulation.every is not None else 'their number'}: the "
                "step is that many times larger than that of one large batch.",
                hint="Divide the loss by the number of micro-batches before `backward`, as in "
                "`(loss / num_micro_batches).backward()`.",
                where=(script.location(backward),),
                severity=Severity.HINT,
            )
    for wrong in wrong_divisors(script):
        where = (script.location(wrong.node),)
        said = f"{script.at(wrong.node)} {wrong.says}"
        yield Hit(said, wrong.hint, where, severity=Severity.WARNING, fix=wrong.fix)


def _of_accelerate(script: Script) -> Iterable[Hit]:
    """`accelerator.backward` divides by the number it was built with, whether or not anything accumulates."""
    frameworks = script.frameworks
    backwards = frameworks.calls("backward")
    given = (
        script.argument(frameworks.objects[0], "gradient_accumulation_steps") if frameworks.objects else None
    )
    if given is None or len(frameworks.objects) != 1 or not backwards or script.mentioned("deepspeed_plugin"):
        return
    number = script.values.constant(given)
    several = isinstance(number, int) and number > 1
    for backward in backwards:
        quotient = _divided_by(script, backward, given)
        if quotient is not None:
            yield Hit(
                message=f"{script.at(quotient)} divides the loss by the number of micro-batches, and "
                f"{script.at(backward)} does so again: `accelerator.backward` divides by the "
                "`gradient_accumulation_steps` that the Accelerator was built with. Steps are that many times too "
                "small.",
                hint="Hand the loss on as it is: `accelerator.backward(loss)`.",
                where=(script.location(quotient),),
            )
    if (
        several
        and not script.mentioned("accumulate")
        and not script.accumulations.all
        and not script.names.foreign
    ):
        yield Hit(
            message=f"{script.at(frameworks.objects[0])} asks for {script.quote(given)} micro-batches per step, and "
            f"nothing accumulates: {script.at(backwards[0])} divides each loss by that number, and every batch is "
            "stepped on. Steps are that many times too small.",
            hint="Put the step under `with accelerator.accumulate(model):`, or leave the argument out.",
            where=(script.location(backwards[0]),),
        )


def _divided_by(script: Script, backward: ast.Call, number: ast.expr) -> ast.BinOp | ast.AugAssign | None:
    """The division of the loss by the same number, on its way to a backward pass."""
    written = ast.unparse(number)
    for given in backward.args[:1]:
        for node in script.values.origins(given):
            by = node.right if isinstance(node, ast.BinOp) else getattr(node, "value", None)
            divides = isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div)
            if divides and by is not None and ast.unparse(by) == written:
                return node  # type: ignore[return-value]
    return None


def check_run(evidence: Evidence) -> Observation:
    """Confirm in the run that every backward pass began from nothing, where the text says so."""
    from grader.checks.run.gradients.leftover_micro_batches import left_over

    active = evidence.trace.trainers
    steps = [s for r in active for s in r.steps if s.empty is not None and (s.backwards or 0) > 1]
    if not steps:
        return not_observable("No step was seen that several backward passes lead to.")
    early = [s for s in steps if s.empty == s.backwards]
    hits = [h for h in check_source(evidence.script) if h.severity is None]
    if len(early) < max(2, len(steps) // 2):
        told = _divided(evidence) if not hits else verified(_ADDED)
        left = left_over(evidence) if told.state is not State.CONTRADICTED else None
        return flagged(left) if left is not None else told
    # A batch that is skipped now and then, for its loss or its gradient's size, is thrown away on purpose.
    usual = 2 * len([s for s in early if s.lost]) > len(
        [s for r in active for s in r.steps if s.empty is not None]
    )
    alone = all(len({s.optimizer for s in r.steps}) == 1 for r in active)
    if not hits and (not alone or not usual or other_use(evidence.script)):
        return not_observable(
            "Gradients were cleared between backward passes, and the script may have had another use for them than to "
            "step, as an attack on the inputs has."
        )
    site = first_known([s.site for r in active for s in r.steps])
    passes = max(s.backwards or 0 for s in early)
    clears = evidence.script.updates.clears
    where = hits[0].where if hits else lines(evidence.script, clears if len(clears) == 1 else ())
    return flagged(
        Hit(
            message=f"{ranks(r.rank for r in active)} ran {passes} backward passes for each step in "
            f"{at(site, 'the training loop')}, and each of them began with empty gradients: only the last micro-batch "
            "of each step counted, the others were computed for nothing.",
            hint=hits[0].hint
            if hits
            else "Clear once per step: right after `step()`, or before the first `backward`.",
            where=told_once((*where, *place(site))),
            ranks=tuple(r.rank for r in active),
            details={"backwards_per_step": passes, "steps": [s.n for s in early[:8]]},
        )
    )


def _divided(evidence: Evidence) -> Observation:
    """Whether the losses of several micro-batches were divided before they added up."""
    from grader.checks.run.gradients.loss_origins import loss_origin

    made = loss_origin(evidence.trace)
    if made is None or made.reduction != "mean" or made.num_backwards < 2 or not made.batches_each:
        return not_observable("Gradients accumulated; whether anything divides them could not be seen.")
    wrong = next(iter(wrong_divisors(evidence.script)), None)
    total = made.factor * made.num_backwards
    if wrong is not None and not math.isclose(total, 1, rel_tol=1e-3):
        return flagged(
            Hit(
                message=f"{evidence.script.at(wrong.node)} {wrong.says} Each of {made.num_backwards} losses went "
                f"backward as {made.factor:g} of its mean, {total:g} together.",
                hint=wrong.hint,
                where=lines(evidence.script, [wrong.node]),
                fix=wrong.fix,
                details={"backwards_per_step": made.num_backwards, "factor": made.factor},
            )
        )
    if made.factor != 1 or changes_gradients(evidence.script):
        return verified(
            f"Each of {made.num_backwards} losses went backward as {made.factor:g} of the mean over its micro-batch."
        )
    return flagged(
        Hit(
            message=f"{at(made.site, 'The training loop')} goes backward {made.num_backwards} times for each step, "
            "each time from the whole mean over a micro-batch: the gradients add up, and nothing divides them by "
            f"{made.num_backwards}, so the step is that many times larger than that of one large batch.",
            hint=f"Divide the loss by the number of micro-batches before `backward`: "
            f"`(loss / {made.num_backwards}).backward()`.",
            where=place(made.site),
            severity=Severity.HINT,
            details={"backwards_per_step": made.num_backwards},
        )
    )
