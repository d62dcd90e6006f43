"""What each rubric item is worth where a task is run: 100 points in all, known before anybody hands in.

An item that cannot show there, whoever hands in, is left out, and the others share its points in proportion, in tenths.
Nothing else ever leaves the scale. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from grader.checks.evidence import Evidence, SourceEvidence
from grader.checks.rule import load_rules
from grader.model.precondition import Precondition
from grader.model.task import TIME, Profile, RubricItem, Task

FULL = 100.0
_STEPS_PER_POINT = 10


@dataclass(frozen=True, slots=True)
class ScaleConditions:
    """What decides which items can show.

    Attributes:
        num_ranks, num_machines: that are started; gpus: whether ranks have GPUs.
        dataset: name; a task may set targets for some only.
        clock: whether there is a reference time to hold a run against.
    """

    num_ranks: int
    num_machines: int
    gpus: bool
    dataset: str
    clock: bool

    @classmethod
    def of(cls, evidence: Evidence | SourceEvidence) -> ScaleConditions:
        """Those of a run; of a submission that was not run, those that it would have had."""
        facts = evidence.facts
        if isinstance(evidence, SourceEvidence):
            return cls(
                facts.world_size, facts.nnodes, facts.seen_as != "cpu", facts.dataset, clock=facts.timed
            )
        return cls(
            num_ranks=evidence.world_size,
            num_machines=max(facts.nnodes, evidence.record.num_nodes),
            gpus=facts.seen_as != "cpu",
            dataset=facts.dataset,
            clock=facts.timed and evidence.calibration is not None,
        )

    @classmethod
    def planned(cls, task: Task, profile: Profile) -> ScaleConditions:
        """Those of a task's profile, before anybody hands in."""
        num_ranks = profile.nproc_per_node * profile.nnodes
        dataset = (profile.datasets or task.datasets)[0]
        return cls(num_ranks, profile.nnodes, profile.name != "cpu", dataset, clock=True)

    def lacking(self, need: Precondition | None) -> str:
        """Why what needs this cannot show, "" where it can."""
        if need is None or need.met(num_ranks=self.num_ranks, num_machines=self.num_machines, gpus=self.gpus):
            return ""
        return need.sentence


@dataclass(frozen=True, slots=True)
class ScaledItem:
    """One rubric item as it is judged under some conditions.

    Attributes:
        item: without what cannot show; its points are the task's own.
        points: what it is worth, of 100.
        left_out: why nothing of it can show, "" where something can.
    """

    item: RubricItem
    points: float
    left_out: str = ""


def scale(task: Task, conditions: ScaleConditions) -> tuple[ScaledItem, ...]:
    """The task's rubric under these conditions, in its order; the points sum to 100 unless nothing can show."""
    items = [_showable(item, task, conditions) for item in task.rubric]
    points = _shares([0.0 if why else item.points for item, why in items])
    return tuple(ScaledItem(item, worth, why) for (item, why), worth in zip(items, points, strict=True))


def _showable(item: RubricItem, task: Task, conditions: ScaleConditions) -> tuple[RubricItem, str]:
    """The item without what cannot show, and why where that is all of it."""
    if why := conditions.lacking(item.needs):
        return item, why
    needs = {rule.code: rule.needs for rule in load_rules()}
    why_codes = [conditions.lacking(needs.get(code)) for code in item.requires]
    why_metric = _no_target(item, task, conditions)
    rest = replace(
        item,
        requires=tuple(code for code, why in zip(item.requires, why_codes, strict=True) if not why),
        metric=None if why_metric else item.metric,
    )
    if rest.requires or rest.metric or rest.answer:
        return rest, ""
    return item, why_metric or next(filter(None, why_codes), "")


def _no_target(item: RubricItem, task: Task, conditions: ScaleConditions) -> str:
    if item.metric == TIME:
        return "" if conditions.clock else "There is no reference time here to hold a run against."
    metric = task.metric(item.metric) if item.metric is not None else None
    if metric is None or metric.name in task.levels(conditions.dataset):
        return ""
    return f"The task sets no {metric.title} for {conditions.dataset}."


def _shares(points: list[float]) -> list[float]:
    """The same proportions with a sum of 100, in tenths; what rounding leaves goes where it takes most away."""
    total = sum(points)
    if not total or abs(total - FULL) < 1e-6:
        return points
    exact = [FULL * _STEPS_PER_POINT * p / total for p in points]
    steps = [int(e + 1e-9) for e in exact]
    left = round(FULL * _STEPS_PER_POINT) - sum(steps)
    for number in sorted(range(len(points)), key=lambda n: steps[n] - exact[n])[:left]:
        steps[number] += 1
    return [s / _STEPS_PER_POINT for s in steps]
