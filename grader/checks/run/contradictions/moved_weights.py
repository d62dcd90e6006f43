"""Whether weights move by the optimizer's steps, or are moved by something else beside them.

What is averaged between ranks reaches the weights by the step alone. Where training goes on with other weights than
the step left, gradients and steps may all be in order and have no part in what is trained. Sentences for staff about
what honest training cannot look like; "" where nothing is odd or nothing can be said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from grader.checks.evidence import Evidence
from grader.checks.phrases import count
from grader.checks.run.models.equal_sums import equal
from grader.model.line_change import Sums
from grader.model.trace import Event, RankTrace

_FEWEST_LOOKS = 6
_MOSTLY = 0.8
_BESIDE = 0.6
"""Of a step's length, by which what moves weights leaves its line. A projection after the step (a mask, a bound, unit
length) comes to one half at most, a rate of the script's own to nothing, decay and rounding to little."""


def moved_beside_steps(evidence: Evidence) -> str:
    """Weights that go on, after nearly every step, from somewhere else than where the step left them."""
    ranks = evidence.trace.trainers
    optimizers = sorted({step.optimizer for rank in ranks for step in rank.steps})
    return next((fact for fact in (_moved_beside(ranks, one) for one in optimizers) if fact), "")


def _moved_beside(ranks: Sequence[RankTrace], optimizer: int) -> str:
    looks = set.intersection(*(_looks(rank, optimizer) for rank in ranks))
    told = [{n: event for n, event in _moved(rank) if n in looks} for rank in ranks]
    # Ranks whose steps leave different weights bring them together afterwards: to average weights is that.
    beside = {
        n: max(_share(one[n]) for one in told)
        for n in set.intersection(*map(set, told))
        if all(equal(_left(one[n]), _left(told[0][n])) and _share(one[n]) >= _BESIDE for one in told)
    }
    if len(looks) < _FEWEST_LOOKS or len(beside) < _MOSTLY * len(looks):
        return ""
    return (
        f"After {len(beside)} of {count(len(looks), 'step')} that were looked at, training went on with other weights "
        f"than the optimizer had left: beside the step's own line they moved {median(beside.values()):.1f} times as "
        "far as the step had moved them (typically). What trains them is not the optimizer."
    )


def _looks(rank: RankTrace, optimizer: int) -> set[int]:
    """Steps after which its weights were looked at unannounced, but for the last: passes lie on both sides."""
    steps = [step for step in rank.steps if step.optimizer == optimizer]
    return {look.n for look in rank.params}.intersection(step.n for step in steps[1:-1] if step.grads is None)


def _moved(rank: RankTrace) -> Iterator[tuple[int, Event]]:
    for event in rank.events("moved"):
        n = event.fields.get("n")
        if isinstance(n, int):
            yield n, event


def _share(event: Event) -> float:
    step, aside = event.fields.get("step"), event.fields.get("aside")
    return aside / step if isinstance(step, float) and isinstance(aside, float) and step > 0 else 0.0


def _left(event: Event) -> Sums:
    sums = event.fields.get("left")
    return tuple(x for x in sums if isinstance(x, int | float)) if isinstance(sums, list | tuple) else ()
