"""Schedules that do not move the optimizer which steps, another one or none, as findings of OPT006."""

from __future__ import annotations

from grader.checks.phrases import at, count, place, told_once
from grader.checks.rule import Hit
from grader.checks.run.optimisation.learning_rates import LearningRateCurve
from grader.checks.run.optimisation.schedule_ends import LeftBehind
from grader.checks.source.causes import lines, stands_at
from grader.checks.source.optimisation.schedules import ONE_OPTIMIZER, built_anew, replaced_optimizers
from grader.checks.source.optimisation.unstepped_schedules import unstepped
from grader.checks.source.script import Script
from grader.model.trace import Event, RankTrace

_FEWEST = 4
"""Steps that show a rate to stand still."""


def behind_hit(script: Script, behind: LeftBehind) -> Hit:
    """Of an optimizer that was replaced while it was trained."""
    new = [one.optimizer for one in replaced_optimizers(script)]
    return Hit(
        message=f"{at(behind.schedule.site)} makes the schedule for an optimizer that took no more than "
        f"{count(behind.taken, 'step')}. {at(behind.step.site)} then stepped with another one in its place, and the "
        f"rate stood at {behind.rate:.3g} in the {behind.left:,} steps that were left: the schedule does not move it.",
        hint=ONE_OPTIMIZER,
        where=tuple(
            dict.fromkeys((*lines(script, new), *place(behind.schedule.site), *place(behind.step.site)))
        ),
        details={"rate": behind.rate, "taken": behind.taken, "left": behind.left},
    )


def aside_hit(script: Script, made: Event, rate: float, steps: int) -> Hit:
    """Of an optimizer that never stepped, where `rate` is that of the other in all its steps."""
    anew = built_anew(script, made.site)
    instead = f" {script.at(anew[0])} builds another one in its place." if anew else ""
    return Hit(
        message=f"{at(made.site)} makes the schedule (`{made.fields.get('kind')}`) for an optimizer that never steps."
        f"{instead} The rate of the one that does stood at {rate:.3g} in all {steps:,} steps: no step of the schedule "
        "moves it.",
        hint=f"Make the schedule below {script.at(anew[0])}, for the optimizer that is stepped. Or build the optimizer "
        "once: wrapping a model leaves its parameters the same objects."
        if anew
        else f"Give the schedule at {at(made.site)} the optimizer that is stepped.",
        where=told_once((*lines(script, anew), *place(made.site))),
        details={"rate": rate, "steps": steps},
    )


def never_stepped(script: Script, rank: RankTrace, found: LearningRateCurve) -> Hit | None:
    """Of a schedule that the run built and the text never steps, where the rate stood still in all steps."""
    if len(set(found.rates)) > 1 or len(found.rates) < _FEWEST:
        return None
    for one in unstepped(script):
        made = next((e for e in rank.events("lr_scheduler") if stands_at(script, one.nodes[0], e.site)), None)
        if made is not None:
            stood = f"It stood at {found.rates[0]:.3g} in all {count(len(found.rates), 'step')}."
            return Hit(
                f"{one.says} {stood}", one.hint, lines(script, one.nodes), details={"rate": found.rates[0]}
            )
    return None
