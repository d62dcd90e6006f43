"""Why the saved weights score something else than anybody expected: which one change brings the expected score.

The scorer has measured the changes (`Evaluation.others`); here one is chosen, or none, and put into words. A change
explains a score only by a clear margin and, where the script reported an accuracy, by coming near to that.
"""

from __future__ import annotations

from dataclasses import dataclass

from grader.checks.phrases import count
from grader.checks.source.image_preparation import prepares_as
from grader.checks.source.script import Script
from grader.model.evaluation import Change, Evaluation, OtherScore

_CLEARLY = 0.25
"""Accuracy that a change must bring where nothing was reported that it could be held against; of what was wrong it must
leave half at most. A network that has trained too little may score better on other images by chance."""
_LEFT_OPEN = 0.25
"""Share of the gap between report and score that the change may leave open."""
_FORGIVEN = 0.05
"""Accuracy by which training mode must do better than other changes: BatchNorm's own statistics of each batch hide how
images were prepared, too."""

WHAT_TO_WRITE = {
    Change.NOTHING: "Count correct predictions and samples over all ranks, in `model.eval()` mode, with the same "
    "weights that are saved.",
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
        own: the task's own way, on the same sample.
        other: the change.
        claim: the reported accuracy, 0–1, that it comes near to; None where none was reported.
        artifact: file that was scored.
    """

    own: OtherScore
    other: OtherScore
    claim: float | None
    artifact: str

    @property
    def gain(self) -> float:
        """What the change brings, in accuracy."""
        return self.other.accuracy - self.own.accuracy

    @property
    def about_images(self) -> bool:
        """Whether the script prepares its images otherwise than the scorer does."""
        return self.other.change in (Change.RANGE, Change.LAYOUT)

    @property
    def sentence(self) -> str:
        """What was measured, both ways."""
        own, other = self.own, self.other
        right = f"{other.accuracy:.2f} of {count(other.num_samples, 'validation sample')} right"
        match other.change:
            case Change.RANGE:
                return (
                    f"On images {in_range(other)} ({other.way}) the same weights get {right}, and {own.accuracy:.2f} "
                    f"on images {in_range(own)}, which is how the task prepares them."
                )
            case Change.LAYOUT:
                return (
                    f"On images with {other.way} the same weights get {right}, and {own.accuracy:.2f} on images as the "
                    "task prepares them."
                )
            case Change.MODE:
                return (
                    "In training mode, where BatchNorm takes each batch's own statistics, the same weights get "
                    f"{right}; in evaluation mode, with the running statistics that were saved, {own.accuracy:.2f}."
                )
        return (
            f"The weights in `{other.way}` get {right}, and those in `{self.artifact}`, which are scored, "
            f"{own.accuracy:.2f}."
        )


def in_range(score: OtherScore) -> str:
    """`from -1 to 1`."""
    low, high = (
        (f"{end:.2f}".rstrip("0").rstrip(".") if end else "0")
        for end in (score.black or 0.0, score.white or 0.0)
    )
    return f"from {low} to {high}"


def reason_of(evaluation: Evaluation | None, script: Script | None = None) -> ScoreReason | None:
    """The change that explains a score; None where none does, or nothing had to be explained.

    Args:
        evaluation: what the scorer measured.
        script: the text; one that writes out the task's own normalisation prepares images as they are scored.
    """
    if evaluation is None or not evaluation.others:
        return None
    own, *changed = evaluation.others
    if script is not None and prepares_as(script, own.black, own.white):
        changed = [other for other in changed if other.change is not Change.RANGE]
    measured = evaluation.validation.get("accuracy", own.accuracy)
    claims = evaluation.reported.claims if evaluation.reported is not None else ()
    fitting = [
        (left + _handicap(other), number, ScoreReason(own, other, claim, evaluation.artifact))
        for claim in claims
        for number, other in enumerate(changed)
        if (left := abs(claim - measured - (other.accuracy - own.accuracy)))
        <= _allowed(claim - measured, other, evaluation)
    ]
    if claims:
        return min(fitting, key=lambda one: one[:2])[2] if fitting else None
    best = max(changed, key=lambda other: other.accuracy - _handicap(other), default=own)
    clear = best.accuracy - own.accuracy >= _CLEARLY and 1 - best.accuracy <= 0.5 * (1 - own.accuracy)
    return ScoreReason(own, best, None, evaluation.artifact) if clear else None


def _handicap(other: OtherScore) -> float:
    return _FORGIVEN if other.change is Change.MODE else 0.0


def _allowed(gap: float, other: OtherScore, evaluation: Evaluation) -> float:
    """How far from a report a change may end; below 0 where it cannot be what happened."""
    if gap > 0:
        return max(_LEFT_OPEN * gap, 2 / max(1, other.num_samples))
    # A report that is too low has many causes; of these only a network in training mode is one.
    return evaluation.tolerance if other.change is Change.MODE else -1.0
