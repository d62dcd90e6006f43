"""Epochs of a report that are several passes over the training split: as many as there are ranks.

Who validates every second epoch only reports fewer, too; so the text has to show a count of steps over the whole set.
"""

from __future__ import annotations

from grader.checks.evidence import Evidence
from grader.checks.phrases import count
from grader.checks.rule import Hit
from grader.checks.source.causes import lines
from grader.checks.source.optimisation.schedules import steps_of_whole_set
from grader.model.finding import EvidenceKind

_ROUNDING = 0.12
"""Relative difference from the number of ranks: epochs are rounded up to whole steps."""


def repeated_passes(evidence: Evidence) -> Hit | None:
    """What is wrong with the number of steps of an epoch; None where nothing is."""
    reported = evidence.evaluation.reported if evidence.evaluation is not None else None
    ranks, total = len(evidence.trace.trainers), evidence.ledger.num_train
    counted = next(iter(steps_of_whole_set(evidence.script)), None)
    if reported is None or not reported.epochs or not total or ranks < 2 or counted is None:
        return None
    drawn = sum(epoch.num_drawn for stream in evidence.ledger.training for epoch in stream.epochs)
    passes, epochs, script = drawn / total, len(reported.epochs), evidence.script
    if abs(passes / epochs / ranks - 1) > _ROUNDING:
        return None
    return Hit(
        message=f"`metrics.json` has {count(epochs, 'epoch')}, and the training split was gone through "
        f"{passes:.0f} times: {script.at(counted)} counts the steps of an epoch over the whole set, "
        f"{script.quote(counted)}, and each of {ranks} ranks takes as many over its share. An epoch is then {ranks} "
        f"times the work, and {ranks} ranks need as long for it as one.",
        hint="Count the batches of the loader, which knows its share: `len(loader)`.",
        where=lines(script, [counted]),
        ranks=tuple(rank.rank for rank in evidence.trace.trainers),
        details={"epochs": epochs, "passes": round(passes, 2)},
        evidence=EvidenceKind.TRACE,
    )
