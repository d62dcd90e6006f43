"""What the trusted scorer measured on the weights a run left behind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from grader.model.audited_step import AuditedStep
from grader.model.metric import ACCURACY, Metric
from grader.model.task_figure import TaskFigure


class ArtifactProblem(StrEnum):
    """Why weights could not be scored; each has its own explanation in the report."""

    MISSING = "missing"
    REFUSED = "refused"
    """Not a plain file, too large, not readable as weights only."""
    MISMATCH = "mismatch"
    """Names or shapes are not the task network's."""
    NOT_FINITE = "not_finite"
    """Of the weights, or of a metric that they come to."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a task's `examine()` says to one question about the files that a run left.

    Attributes:
        share: how much of it is right, 0–1; None where that cannot be told here.
        said: one sentence with the numbers.
        file: the file it is about, "" for several.
        brought: by column of that file, times of other runs, which this one can't have measured: the script has to
            know them from somewhere else.
    """

    share: float | None
    said: str
    file: str = ""
    brought: dict[str, tuple[float, ...]] = field(default_factory=dict)


class Change(StrEnum):
    """What was different when the weights were scored once more."""

    NOTHING = "nothing"
    """The task's own way, on the same sample: what the other ways are held against."""
    RANGE = "range"
    """The numbers that black and white become."""
    LAYOUT = "layout"
    """Images turned over, or black for white."""
    MODE = "mode"
    """Training mode: BatchNorm by each batch's own statistics."""
    WEIGHTS = "weights"
    """Another file that the run left."""


@dataclass(frozen=True, slots=True)
class OtherScore:
    """A score of the same run on a sample of the validation split, in the task's way or with one thing changed.

    Attributes:
        change: the one thing; way: which change it was, in a few words, or the other file's path in the output folder.
        value: of the metric that has to be explained; num_samples: of how many samples, 0: it is not known.
        black, white: what the darkest and the brightest pixel become before the network sees them; None where the
            task's `evaluate()` does not prepare images by one factor and one offset.
        metric: the name of that metric.
    """

    change: Change
    way: str
    value: float
    num_samples: int
    black: float | None = None
    white: float | None = None
    metric: str = ACCURACY.name


@dataclass(frozen=True, slots=True)
class ComparedPictures:
    """What one rank's model was given in training where somebody looked, held against all images of the data set.

    Attributes:
        num: pictures that were compared.
        num_validation: those that are images of the validation split, or hardly differ from one and by far less than
            from any of the training split.
        num_blended: those that are blends of an image of the validation split and another one.
    """

    rank: int
    num: int
    num_validation: int
    num_blended: int = 0


@dataclass(frozen=True, slots=True)
class ComparedText:
    """What one rank's model was given in training where somebody looked, held against all texts of the data set.

    Attributes:
        num: symbols that were compared.
        num_validation: those in passages that stand in the text for validation and nowhere in the others.
    """

    rank: int
    num: int
    num_validation: int


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Result of scoring one run's artifacts.

    Attributes:
        problem: None when the weights were scored, or the task scores none and there were none or good ones.
        detail: one sentence about the problem, "" otherwise.
        artifact: file name below the output folder, "" when missing.
        artifact_bytes: its size.
        prefix: `module.` (or another wrapper's) when every name carried it and it was stripped, else "".
        hidden: what the task's `evaluate()` says of the hidden split, by name.
        validation: the same on the validation split that the script saw.
        num_hidden, num_validation: samples scored, each once; 0: it is not known how many.
        sums: fingerprint of the weights, floats only, by sorted name without prefix, at most 512 tensors: comparable to
            the SAVE event's.
        fingerprints: of single weights by name, comparable to those of the PARAMS event; empty in older evaluations.
        reported: parsed `metrics.json`, None when absent or invalid; reported_problem says why it is invalid.
        seconds: time of scoring.
        answers: by name, of the task's `examine()`; unread: artifacts that are missing or unreadable, each with the
            reason as a sentence; unexamined: where `examine()` failed on this run, for staff; "" where it did not.
        others: where the score is not what the script reports or far from the target: the task's own way first, then
            each with one thing changed. Empty where nothing had to be explained.
        class_labels: label that each class had in this attempt, by its prepared one; empty: as prepared.
        audited: steps of the run that were taken again; pictures, texts: of what the ranks trained on; empty where none
            could be.
        figures: of the task's own, for the report to draw; undrawn: why there are none, "" where none are missing.
    """

    problem: ArtifactProblem | None
    detail: str = ""
    artifact: str = ""
    artifact_bytes: int = 0
    prefix: str = ""
    hidden: dict[str, float] = field(default_factory=dict)
    validation: dict[str, float] = field(default_factory=dict)
    num_hidden: int = 0
    num_validation: int = 0
    sums: tuple[float, ...] = ()
    fingerprints: dict[str, float] = field(default_factory=dict)
    reported: ReportedMetrics | None = None
    reported_problem: str = ""
    seconds: float = 0.0
    answers: dict[str, Answer] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    unexamined: str = ""
    others: tuple[OtherScore, ...] = ()
    class_labels: tuple[int, ...] = ()
    audited: tuple[AuditedStep, ...] = ()
    pictures: tuple[ComparedPictures, ...] = ()
    texts: tuple[ComparedText, ...] = ()
    figures: tuple[TaskFigure, ...] = ()
    undrawn: str = ""

    def unexplained(self, metrics: Iterable[Metric], levels: Mapping[str, float]) -> Metric | None:
        """The first metric that is not what the script reports or, where it reports none, below its level."""
        return next(
            (metric for metric in metrics if self._unexplained(metric, levels.get(metric.name))), None
        )

    def _unexplained(self, metric: Metric, level: float | None) -> bool:
        measured, hidden = self.validation.get(metric.name), self.hidden.get(metric.name)
        if measured is None or hidden is None:
            return False
        claims = self.reported.claims(metric) if self.reported is not None else ()
        if claims:
            tolerance = metric.tolerance(self.num_validation)
            return all(abs(claim - measured) > tolerance for claim in claims)
        return level is not None and not metric.reached(hidden, level)


_MOST_TIMES = 16
"""How often a fraction is counted at most: once on each rank."""


@dataclass(frozen=True, slots=True)
class ReportedMetrics:
    """`metrics.json` as the script wrote it; for display and cross-checks only. Values are finite floats.

    Attributes:
        epochs: figures that are known here by key, epoch by epoch.
        unknown: other keys of the epochs, sorted.
    """

    epochs: tuple[dict[str, float], ...]
    unknown: tuple[str, ...] = ()

    def values(self, metric: Metric) -> tuple[float, ...]:
        """Of the epochs that report this metric for the validation data.

        A curve of shares that rises above 1 was written in percent, and becomes one from 0 to 1. One that rises from
        below 1 to a few times 1 is a fraction that was counted more than once, and stays as it is.
        """
        key = metric.reported_as
        values = tuple(epoch[key] for epoch in self.epochs if key in epoch)
        highest, lowest = max(values, default=0.0), min(values, default=0.0)
        percent = metric.share and highest > (_MOST_TIMES if lowest <= 1 else 1)
        return tuple(value / 100 for value in values) if percent else values

    def claims(self, metric: Metric) -> tuple[float, ...]:
        """Values that speak for the saved weights: that of the last epoch and the best one."""
        found = self.values(metric)
        return tuple(dict.fromkeys((found[-1], metric.best(found)))) if found else ()
