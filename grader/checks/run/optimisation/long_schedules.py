"""Schedules that are longer than the training that they were stepped in, as findings of OPT006."""

from __future__ import annotations

import ast

from grader.checks.phrases import at, count, place
from grader.checks.rule import Hit
from grader.checks.source.causes import lines
from grader.checks.source.optimisation.optimisation_fixes import length_in_helper, length_of_share
from grader.checks.source.optimisation.planned_epochs import planned_epochs
from grader.checks.source.optimisation.schedules import OWN, of_own_batches, stepped_by
from grader.checks.source.script import Script
from grader.model.trace import Event


def ended_early(script: Script, event: Event, length: int, steps: int, passes: int) -> str:
    """What ended before a schedule that counts the rank's own batches, in a sentence; "" where it counts others.

    `passes`: over the training data, 0 unknown. A number of epochs in the text that is larger says the same: with it, a
    length of the whole set would be longer still.
    """
    planned = planned_epochs(script) or 0
    early = 0 < passes < planned
    if not early and not of_own_batches(script, event.site):
        return ""
    made = f"{at(event.site)} makes the schedule for {count(length, 'step')} of a rank"
    if passes and length * passes % steps == 0:
        made += f", which are {count(length * passes // steps, 'epoch')}"
    return f"{made}. Training ended after {steps:,}" + (f", in epoch {passes}." if passes else ".")


def slow_hit(script: Script, event: Event, length: int, steps: int, apart: int) -> Hit:
    """Of a schedule as long as the run has steps, which was stepped once in `apart` of them."""
    made = {c for _, c in script.calls_under("torch.optim.lr_scheduler.")}
    stepped = [
        c
        for c in script.called("step")
        if isinstance(c.func, ast.Attribute) and made & stepped_by(script, c.func.value)
    ]
    move = f"Move {script.quote(stepped[0])} from {script.at(stepped[0])}" if len(stepped) == 1 else "Step it"
    return Hit(
        message=f"{at(event.site)} makes {_made(event, length)} {count(length, 'step')}, as many as were taken. "
        f"But the schedule was stepped once in {apart} of them, and training ended after {-(-steps // apart):,} of its "
        "steps.",
        hint=f"{move} right behind `optimizer.step()`, or count its length in epochs.",
        where=(*lines(script, stepped), *place(event.site)),
        details={"length": length, "steps": steps, "apart": apart},
    )


def _made(event: Event, length: int) -> str:
    alone = event.fields.get("length") == length
    return f"a `{event.fields.get('kind')}` for" if alone else "the last of schedules that together last"


def whole_set_hit(script: Script, event: Event, length: int, steps: int, ranks: int) -> Hit:
    """Of a schedule that is `ranks` times as long as the steps that each rank took."""
    counted, written, fix = length_of_share(script, event.site)
    hint = f"Count the batches of the loader, which knows its share: `{written}`." if written else OWN
    if not written:
        helped, advice, edits = length_in_helper(script, event.site)
        counted, hint, fix = helped or counted, advice or hint, edits
    return Hit(
        message=f"{at(event.site)} makes {_made(event, length)} {count(length, 'step')}, but each of "
        f"{ranks} ranks took {steps:,}, 1/{ranks} of that. The length is that of the whole training set, so the rate "
        "never came to the end of its curve.",
        hint=hint,
        fix=fix,
        where=(*lines(script, counted), *place(event.site)),
        details={"length": length, "steps": steps, "ranks": ranks},
    )
