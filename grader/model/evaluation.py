"""What the trusted scorer measured on the weights a run left behind."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class ArtifactProblem(StrEnum):
    """Why weights could not be scored; each has its own explanation in the report."""

    MISSING = "missing"
    REFUSED = "refused"
    """Not a plain file, too large, not readable as weights only."""
    MISMATCH = "mismatch"
    """Names or shapes are not the task network's."""
    NOT_FINITE = "not_finite"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a task's `examine()` says to one question about the files that a run left.

    Attributes:
        share: how much of it is right, 0–1; None where that cannot be told here.
        said: one sentence with the numbers.
        file: the file it is about, "" for several.
    """

    share: float | None
    said: str
    file: str = ""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Result of scoring one run's artifacts.

    Attributes:
        problem: None when the weights were scored, or the task scores none and there were none or good ones.
        detail: one sentence about the problem, "" otherwise.
        artifact: file name below the output folder, "" when missing.
        artifact_bytes: its size.
        prefix: `module.` (or another wrapper's) when every name carried it and it was stripped, else "".
        hidden: metrics on the hidden split, such as `accuracy` (0–1) and `loss`.
        validation: the same on the validation split that the script saw.
        num_hidden, num_validation: samples scored, each once.
        sums: fingerprint of the weights, floats only, by sorted name without prefix, at most 512 tensors: comparable to
            the SAVE event's.
        reported: parsed `metrics.json`, None when absent or invalid; reported_problem says why it is invalid.
        seconds: time of scoring.
        answers: by name, of the task's `examine()`; unread: artifacts that are missing or unreadable, each with the
            reason as a sentence.
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
    reported: ReportedMetrics | None = None
    reported_problem: str = ""
    seconds: float = 0.0
    answers: dict[str, Answer] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReportedMetrics:
    """`metrics.json` as the script wrote it; display and EVAL001/EVAL007 only. Values are finite floats."""

    epochs: tuple[dict[str, float], ...]
