"""What a learner has of all points of a course, as its gradebook says it, as far as it is told already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grader.store.grading.progress import OwnTask


@dataclass(frozen=True, slots=True)
class OwnTotal:
    """A learner's total.

    Attributes:
        share: of all points, 0 to 1, each task by its weight; what was not handed in counts as nothing.
        num_hidden: tasks that are left out because how they went is not told before they are due.
    """

    share: float
    num_hidden: int


def own_total(tasks: Sequence[OwnTask]) -> OwnTotal | None:
    """The total; None: nothing that counts is told yet."""
    told = [one for one in tasks if one.task.offered and one.hidden_until is None]
    whole = sum(one.task.terms.weight for one in told)
    if whole <= 0:
        return None
    got = sum(one.task.terms.weight * one.standing.result.share for one in told if one.standing is not None)
    return OwnTotal(got / whole, sum(one.hidden_until is not None for one in tasks))
