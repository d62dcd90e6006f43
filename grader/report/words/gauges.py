"""Measured numbers against their targets, in words: the task's metrics, time and scaling."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from grader.judging.attempt import Attempt
from grader.model.calibration import Calibration
from grader.model.evaluation import Evaluation
from grader.model.grade import ItemState, RubricResult
from grader.model.metric import Metric, target_of, validation_of
from grader.report.words.wording import plural, points_text, seconds_text


@dataclass(frozen=True, slots=True)
class Gauge:
    """One number beside its target.

    Attributes:
        name: what was measured.
        value, target: with units, "–" where there is none.
        met: None where nothing was asked or nothing could be measured.
        share: value on a bar from 0 to 1; mark: the target on the same bar; None where there is no bar.
        note: one or two sentences: how it was measured.
        discounted: the number would do, and the rubric does not let it count; `note` says why.
    """

    name: str
    value: str
    target: str
    met: bool | None
    share: float | None
    mark: float | None
    note: str
    discounted: bool = False

    @property
    def outcome(self) -> str:
        """`reached`, `missed`, `not counted`, `not measured`, or `shown only` where nothing was asked."""
        if self.discounted:
            return "not counted"
        if self.met is not None:
            return "reached" if self.met else "missed"
        return "not measured" if self.value == "–" else "shown only"


def gauges(attempt: Attempt) -> tuple[Gauge, ...]:
    """Metrics, time and scaling, those of them of which anything is known."""
    found = (*(_network(attempt, m) for m in attempt.grade.measures), _time(attempt), _scaling(attempt))
    return tuple(gauge for gauge in found if gauge is not None)


def measured_s(attempt: Attempt) -> float | None:
    """The time that is held against the target, repeats considered; None where the run has none."""
    metrics = attempt.grade.metrics
    if "time_s" in metrics:
        return metrics["time_s"]
    return metrics.get("cpu_s" if _on_cpu(attempt) else "wall_s")


def _on_cpu(attempt: Attempt) -> bool:
    profile = attempt.task.profile(attempt.grade.profile)
    return profile is None or profile.backend == "gloo"


def _network(attempt: Attempt, metric: Metric) -> Gauge | None:
    """A metric of the weights that were left."""
    metrics = attempt.grade.metrics
    value, target = metrics.get(metric.name), metrics.get(target_of(metric.name))
    if value is None and target is None:
        return None
    scale = 1.0 if metric.share else _scale(value, target)
    return Gauge(
        name=f"{metric.heading} on unseen data",
        value=metric.text(value) if value is not None else "–",
        target=metric.asked(target) if target is not None else "–",
        met=None if target is None or value is None else metric.reached(value, target),
        share=None if value is None or not scale else max(0.0, value / scale),
        mark=None if target is None or not scale else max(0.0, target / scale),
        note=_network_note(attempt.evaluation, metric, metrics.get(validation_of(metric.name))),
    )


def _scale(value: float | None, target: float | None) -> float:
    """What a bar from 0 on stands for as a whole; 0 where there is nothing to compare, and so no bar."""
    return 1.25 * max(value, target) if value is not None and target is not None else 0.0


def _network_note(evaluation: Evaluation | None, metric: Metric, validation: float | None) -> str:
    if evaluation is None:
        return "No weights were scored."
    if evaluation.problem is not None:
        return (
            f"The weights could not be scored: {evaluation.detail}"
            if evaluation.detail
            else "No weights to score."
        )
    seen = (
        f"{plural(evaluation.num_hidden, 'sample')} that your script never saw, each once"
        if evaluation.num_hidden
        else "data that your script never saw"
    )
    note = f"The judge loaded {evaluation.artifact} and scored {seen}. What the script prints does not count."
    if validation is not None:
        note += f" On the validation data the same weights reach {metric.text(validation)}."
    return note


def _time(attempt: Attempt) -> Gauge | None:
    metrics = attempt.grade.metrics
    value, target = measured_s(attempt), metrics.get("time_target_s")
    if value is None and target is None:
        return None
    scale = _scale(value, target)
    on_cpu = _on_cpu(attempt)
    what = (
        "CPU time of the slowest rank with its children, from the operating system; waiting for others is not counted."
        if on_cpu
        else "From the start of the first rank to the end of the last, by the judge's clock."
    )
    met = None if target is None or value is None else value <= target
    refused = (
        next((r.reason for r in _judged(attempt, "time") if r.state is ItemState.LOST), "") if met else ""
    )
    return Gauge(
        name="CPU time of the slowest rank" if on_cpu else "Run time",
        value="–" if value is None else seconds_text(value),
        target=f"at most {seconds_text(target)}" if target is not None else "–",
        met=met and not refused,
        share=None if value is None or not scale else value / scale,
        mark=None if target is None or not scale else target / scale,
        note=" ".join(
            part for part in (refused, what, _calibration_note(attempt, attempt.calibration)) if part
        ),
        discounted=bool(refused),
    )


def _judged(attempt: Attempt, metric: str) -> Iterable[RubricResult]:
    """The rubric results that a metric decides."""
    ids = {item.id for item in attempt.task.rubric if item.metric == metric}
    return (result for result in attempt.grade.rubric if result.id in ids)


def _calibration_note(attempt: Attempt, calibration: Calibration | None) -> str:
    style = calibration.slowest if calibration else None
    if calibration is None or style is None:
        return ""
    wanted = attempt.task.target("time")
    factor = f"{points_text(wanted.factor)} × " if wanted and wanted.factor else ""
    spread = f"repeated runs differ by about {calibration.spread:.0%}"
    if calibration.provisional:
        spread = f"measured only provisionally, so a run that misses it by up to {calibration.spread:.0%} is repeated"
    return (
        f"The target is {factor}{seconds_text(style.median_s)}, the time of the slowest accepted example on this "
        f"machine; {spread}."
    )


def _scaling(attempt: Attempt) -> Gauge | None:
    metrics = attempt.grade.metrics
    rate, alone = metrics.get("samples_per_s"), metrics.get("samples_per_s_one_rank")
    if rate is None:
        return None
    speedup, efficiency = metrics.get("speedup"), metrics.get("efficiency")
    unit = attempt.task.samples
    note = f"{plural(attempt.grade.world_size, 'rank')} together train on {rate:,.0f} {unit} per second"
    note += f", one rank alone on {alone:,.0f}" if alone else ""
    note += f": {efficiency:.0%} of perfect scaling." if efficiency is not None else "."
    return Gauge(
        name="Speed against one rank" if alone else "Speed",
        value=f"{speedup:.2f}×" if speedup is not None else f"{rate:,.0f} {unit}/s",
        target="–",
        met=None,
        share=None if speedup is None else min(1.0, speedup / max(attempt.grade.world_size, 1)),
        mark=None,
        note=note,
    )
