"""Rates that a script sets by hand and that run through the same values in each epoch, as findings of OPT006."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from grader.checks.phrases import count
from grader.checks.rule import Hit
from grader.checks.run.data.loader_passes import passes_of
from grader.checks.run.optimisation.learning_rates import LearningRateCurve, optimizer_places
from grader.checks.source.causes import lines
from grader.checks.source.optimisation.rate_causes import set_by_hand
from grader.checks.source.optimisation.restarted_rates import restarted_rates
from grader.checks.source.script import Script
from grader.model.finding import Severity
from grader.model.trace import RankTrace

_FEWEST_EPOCHS = 3
_FEWEST_STEPS = 4


@dataclass(frozen=True, slots=True)
class SameCurve:
    """The rates of each epoch: how many epochs had them, and those of the first."""

    epochs: int
    rates: tuple[float, ...]

    @property
    def climbs(self) -> bool:
        """Whether the rate never falls within an epoch, as no curve does that restarts on purpose."""
        return all(a <= b for a, b in pairwise(self.rates))


def same_in_each_epoch(rank: RankTrace, found: LearningRateCurve) -> SameCurve | None:
    """The curve that a rank's rates ran through in all of its epochs, where no schedule of torch was made."""
    if rank.events("lr_scheduler"):
        return None
    begins = sorted({p.batches[0].step for p in passes_of(rank) if p.kind == "training"})
    if len(begins) < _FEWEST_EPOCHS:
        return None
    rates = {step.n: rate for step, rate in zip(found.steps, found.rates, strict=True)}
    ends = [*begins[1:], found.steps[-1].n + 1]
    epochs = [tuple(rates[n] for n in range(a, b) if n in rates) for a, b in zip(begins, ends, strict=True)]
    if len(set(epochs)) > 1:
        return None
    moves = sum(a != b for a, b in pairwise(epochs[0]))
    return SameCurve(len(epochs), epochs[0]) if moves >= _FEWEST_STEPS - 1 else None


def restarting_hit(script: Script, same: SameCurve) -> Hit | None:
    """What the run and the text say together; of a text that says nothing, a curve that only climbs is a hint."""
    first, last = same.rates[0], same.rates[-1]
    ran = (
        f"In each of {count(same.epochs, 'epoch')} the learning rate went through the same values, from {first:.3g} to "
        f"{last:.3g} in {count(len(same.rates), 'step')}"
    )
    details = {"epochs": same.epochs, "first": first, "last": last, "steps": len(same.rates)}
    for one in restarted_rates(script):
        return Hit(
            f"{ran}: it never came further along its curve. {one.says}",
            one.hint,
            lines(script, (one.setter, one.count, one.length)),
            details=details,
        )
    if not same.climbs:
        return None
    setters = [setter for setter, _ in set_by_hand(script)]
    return Hit(
        f"{ran}, and fell back with the next one: a warm-up that begins anew in each epoch, and no fall after it.",
        "Make the rate of a count of all steps of the run, which goes on from one epoch to the next.",
        lines(script, setters[:1]) or optimizer_places(script),
        details=details,
        severity=Severity.HINT,
    )
