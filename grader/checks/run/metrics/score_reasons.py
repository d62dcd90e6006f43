"""Why the saved weights score something else than anybody expected: which one change brings the expected score.

The scorer has measured the changes (`Evaluation.others`); here one is chosen, or none, and put into words. A change
explains a score only by a clear margin and, where the script reported one, by coming near to that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from grader.checks.phrases import count
from grader.checks.source.data.computed_preparation import computed_preparations
from grader.checks.source.data.image_preparation import preparations, prepares_as
from grader.checks.source.script import Script
from grader.model.evaluation import Change, Evaluation, OtherScore
from grader.model.metric import Direction, Metric

_CLEARLY = 0.25
"""What a change must bring, of a share, where nothing was reported that it could be held against; of what was wrong it
must leave half at most. A network that has trained too little may score better on other images by chance."""
_WITH_TEXT = 0.03
"""The same where the text itself writes out about these numbers."""
_ABOUT = 0.15
"""Of a range, how far its ends may lie from those that a change has tried."""
_LEFT_OPEN = 0.25
"""Share of the gap between report and score that the change may leave open."""
_FORGIVEN = 0.05
"""Of a share, by which training mode must do better than other changes: BatchNorm's own statistics of each batch hide
how images were prepared, too."""

WHAT_TO_WRITE = {
    Change.NOTHING: "Add up what is counted, and the samples, over all ranks, in `model.eval()` mode, with the "
    "same weights that are saved.",
    Change.MODE: "Call `model.eval()` before the validation pass and `model.train()` behind it: what is reported is "
    "then the score of the network that is saved.",
    Change.WEIGHTS: "Overwrite the file when the last weights are there, or the best ones by the report: no earlier "
    "file may stay in their place.",
}
"""Beside a report that the score contradicts."""


@dataclass(frozen=True, slots=True)
class ScoreReason:
    """One change that explains the score.

    Attributes:
        metric: what was measured.
        own: the task's own way, on the same sample.
        other: the change.
        claim: the reported value that it comes near to; None where none was reported.
        artifact: file that was scored.
        prepared: what the text says of numbers that it normalises by and computes itself; what a network makes of
            images prepared so, no change has measured.
    """

    metric: Metric
    own: OtherScore
    other: OtherScore
    claim: float | None
    artifact: str
    prepared: str = ""

    @property
    def gain(self) -> float:
        """What the change brings, > 0 where it is for the better."""
        if self.prepared and self.claim is not None:
            return self.metric.gain(self.claim, self.own.value)
        return self.metric.gain(self.other.value, self.own.value)

    @property
    def about_images(self) -> bool:
        """Whether the script prepares its images otherwise than the scorer does."""
        return bool(self.prepared) or self.other.change in (Change.RANGE, Change.LAYOUT)

    @property
    def sentence(self) -> str:
        """What the text says of the images, and what was measured; both ways, where a change has shown it."""
        if not self.prepared or self.other.change is Change.RANGE:
            return f"{self.prepared} {self._measured}".lstrip()
        return (
            f"{self.prepared} On images {in_range(self.own)}, which is how the task prepares them, the "
            f"{self.metric.title} of the saved weights is {self.metric.text(self.own.value)}."
        )

    @property
    def _measured(self) -> str:
        own, other, title = self.metric.text(self.own.value), self.other, self.metric.title
        on = f" on {count(other.num_samples, 'validation sample')}" if other.num_samples else ""
        changed = f"{self.metric.text(other.value)}{on}"
        match other.change:
            case Change.RANGE:
                return (
                    f"On images {in_range(other)} ({other.way}) the {title} of the same weights is {changed}, and "
                    f"{own} on images {in_range(self.own)}, which is how the task prepares them."
                )
            case Change.LAYOUT:
                return (
                    f"On images with {other.way} the {title} of the same weights is {changed}, and {own} on images as "
                    "the task prepares them."
                )
            case Change.MODE:
                return (
                    "In training mode, where BatchNorm takes each batch's own statistics, the "
                    f"{title} of the same weights is {changed}; in evaluation mode, with the running statistics that "
                    f"were saved, {own}."
                )
        return (
            f"With the weights in `{other.way}` the {title} is {changed}, and with those in `{self.artifact}`, which "
            f"are scored, {own}."
        )


def in_range(score: OtherScore) -> str:
    """`from -1 to 1`."""
    low, high = (
        (f"{end:.2f}".rstrip("0").rstrip(".") if end else "0")
        for end in (score.black or 0.0, score.white or 0.0)
    )
    return f"from {low} to {high}"


def reason_of(
    evaluation: Evaluation | None, metrics: Iterable[Metric], script: Script | None = None
) -> ScoreReason | None:
    """The change that explains a score; None where none does, or nothing had to be explained.

    Args:
        evaluation: what the scorer measured.
        metrics: the task's.
        script: the text; one that writes out the task's own normalisation prepares images as they are scored.
    """
    if evaluation is None or not evaluation.others:
        return None
    own, *changed = evaluation.others
    metric = next((metric for metric in metrics if metric.name == own.metric), None)
    if metric is None:
        return None
    reason = _measured(evaluation, metric, own, changed, script)
    return reason if script is None else _by_text(evaluation, metric, own, reason, script)


def _by_text(
    evaluation: Evaluation, metric: Metric, own: OtherScore, reason: ScoreReason | None, script: Script
) -> ScoreReason | None:
    """The reason that the text gives: images normalised by numbers that no change has tried.

    In training mode BatchNorm's own statistics of each batch hide that, and another range may come near by chance.
    """
    computed = next(computed_preparations(script), None) if own.black is not None else None
    if computed is None:
        return reason
    if reason is None:
        claims = evaluation.reported.claims(metric) if evaluation.reported is not None else ()
        claim = metric.best(claims) if claims else own.value
        unexplained = evaluation.unexplained((metric,), {}) is not None and metric.gain(claim, own.value) > 0
        reason = ScoreReason(metric, own, own, claim, evaluation.artifact) if unexplained else None
    if reason is None or reason.gain < 0 or reason.other.change in (Change.LAYOUT, Change.WEIGHTS):
        return reason
    return replace(reason, prepared=computed.says(script))


def _measured(
    evaluation: Evaluation, metric: Metric, own: OtherScore, changed: list[OtherScore], script: Script | None
) -> ScoreReason | None:
    """The change that was measured to bring the score."""
    if script is not None and prepares_as(script, own.black, own.white):
        changed = [other for other in changed if other.change is not Change.RANGE]
    measured = evaluation.validation.get(metric.name, own.value)
    claims = evaluation.reported.claims(metric) if evaluation.reported is not None else ()
    fitting = [
        (left + _handicap(metric, other), number, ScoreReason(metric, own, other, claim, evaluation.artifact))
        for claim in claims
        for number, other in enumerate(changed)
        if (left := abs(claim - measured - (other.value - own.value)))
        <= _allowed(metric.gain(claim, measured), metric, other)
    ]
    if claims:
        return min(fitting, key=lambda one: one[:2])[2] if fitting else None
    found = [ScoreReason(metric, own, other, None, evaluation.artifact) for other in changed]
    best = max(found, key=lambda one: one.gain - _handicap(metric, one.other), default=None)
    least = (
        _WITH_TEXT if best is not None and script is not None and _writes(script, best.other) else _CLEARLY
    )
    clear = best is not None and metric.share and best.gain >= least
    return best if clear and best and _wrong(metric, best.other) <= 0.5 * _wrong(metric, own) else None


def _writes(script: Script, score: OtherScore) -> bool:
    """Whether the text turns images into about the numbers that a change has tried."""
    if score.change is not Change.RANGE or score.black is None or score.white is None:
        return False
    off = _ABOUT * abs(score.white - score.black)
    written = [
        (p.black, p.white) for p in preparations(script) if p.black is not None and p.white is not None
    ]
    return any(abs(black - score.black) + abs(white - score.white) < off for black, white in written)


def _wrong(metric: Metric, score: OtherScore) -> float:
    """How far a share is from the best there is."""
    return metric.gain(float(metric.direction is Direction.MAX), score.value)


def _handicap(metric: Metric, other: OtherScore) -> float:
    return _FORGIVEN if other.change is Change.MODE and metric.share else 0.0


def _allowed(gap: float, metric: Metric, other: OtherScore) -> float:
    """How far from a report a change may end; below 0 where it cannot be what happened."""
    tolerance = metric.tolerance(other.num_samples)
    if gap > 0:
        return max(_LEFT_OPEN * gap, tolerance)
    # A report that is worse has many causes; of these only a network in training mode is one.
    return tolerance if other.change is Change.MODE else -1.0
