"""What an attempt comes to: what was judged, and what counts once lateness and an instructor have had their say."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from grader.model.grade import Grade, Verdict


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """One judged attempt.

    Attributes:
        verdict, points: what counts; points 0 while it is held.
        max_points: 100; it may be another number on an earlier scale.
        judged_verdict, judged_points: as the judge gave them.
        late_days: days begun after the due date; late_loss: share of the points that they cost, 0–1.
        free_days: so many of them are late days that the course gives, which cost nothing.
        decided: an instructor set what counts.
        held_since: since when it waits for an instructor to decide; None: it does not.
        earlier_scale: it was judged when what could not be observed left the total.
        comment_points: what comments of staff add to the judged points, below 0: take; the number of an override holds
            without them.
    """

    verdict: Verdict
    points: float
    max_points: float
    judged_verdict: Verdict
    judged_points: float
    late_days: int = 0
    late_loss: float = 0.0
    decided: bool = False
    held_since: datetime | None = None
    earlier_scale: bool = False
    free_days: int = 0
    comment_points: float = 0.0

    @property
    def share(self) -> float:
        """Points of possible points, 0 to 1."""
        return min(max(self.points / self.max_points, 0.0), 1.0) if self.max_points > 0 else 0.0

    @property
    def as_judged(self) -> bool:
        """Whether nothing stands between what was judged and what counts."""
        return not (self.decided or self.late_days or self.comment_points or self.held_since is not None)

    @property
    def otherwise(self) -> bool:
        """Whether an instructor accepted what was not, or the other way round."""
        verdicts = (self.verdict, self.judged_verdict)
        return self.decided and verdicts[0] is not verdicts[1] and Verdict.ACCEPTED in verdicts

    @classmethod
    def of(cls, grade: Grade) -> AttemptResult:
        """A grade alone, with nobody and no date to change it."""
        return cls(
            *(grade.verdict, grade.points, grade.max_points, grade.verdict, grade.points),
            earlier_scale=grade.earlier_scale,
        )
