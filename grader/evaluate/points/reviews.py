"""Why an attempt is held for a person: each reason in full for staff, and what it is about in words for everybody."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from grader.checks.evidence import Evidence
from grader.checks.phrases import listed
from grader.evaluate.points.outcome import Outcome
from grader.evaluate.time.timing import too_fast
from grader.model.finding import Finding
from grader.model.grade import RubricResult
from grader.model.task import TIME

MAX_NOT_SEEN = 20.0
"""Points of things that the judge could not watch, beyond which a person looks."""


@dataclass(frozen=True, slots=True)
class ReviewReason:
    """One reason to hold an attempt.

    Attributes:
        text: what was seen, for staff alone.
        subjects: what a person looks at, for learners as well: it gives away nothing of how it was seen.
    """

    text: str
    subjects: tuple[str, ...]


def review_reasons(
    findings: Sequence[Finding], rubric: Sequence[RubricResult], outcome: Outcome
) -> tuple[ReviewReason, ...]:
    """All of them, those of what was found first."""
    run, time = outcome.evidence, outcome.timing
    calibration = run.calibration if isinstance(run, Evidence) else None
    reasons = [ReviewReason(f"{f.code}: {f.message}", f.subjects) for f in findings if f.holds]
    evaluation = outcome.evaluation
    if evaluation is not None and evaluation.unexamined:
        failed = f"The task's {evaluation.unexamined}. What this run left made it fail."
        reasons.append(ReviewReason(failed, ("the files that the run left",)))
    # The outcome of a run vouches for what it computed, not for how fast it was.
    untimed = {item.id for item in outcome.task.rubric if item.metric == TIME and time.unsettled}
    total = sum(item.not_seen for item in rubric)
    for item in rubric:
        # What gates acceptance and neither was seen nor speaks for itself is nobody's to wave through but a person's.
        alone = item.must and not (outcome.vouched and item.id not in untimed)
        if item.not_seen and (alone or total > MAX_NOT_SEEN):
            reasons.append(ReviewReason(item.not_seen_reason, (f"“{item.title}”",)))
    if calibration is not None and too_fast(time, calibration):
        seen = f"{time.seconds:.1f} s is far below every calibrated run."
        reasons.append(ReviewReason(seen, ("the training time",)))
    return tuple(reasons)


def subjects_of(reasons: Iterable[ReviewReason]) -> tuple[str, ...]:
    """What a person is to look at, each once."""
    return tuple(dict.fromkeys(subject for reason in reasons for subject in reason.subjects))


def held_for(subjects: Sequence[str]) -> str:
    """The sentence of a held attempt."""
    return f"Held for review: a person looks at {listed(subjects)} before it is graded. No attempt is lost."
