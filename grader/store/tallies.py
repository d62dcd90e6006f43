"""How many attempts there are of each kind, for operators. Says nothing about anybody."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select

from grader.model.grade import Verdict
from grader.store.database import Store
from grader.store.tables import Attempt, GradeRecord
from grader.store.tables.attempt import AttemptState


@dataclass(frozen=True, slots=True)
class Tally:
    """So many attempts in that state; `verdict` None: they have no grade."""

    state: AttemptState
    verdict: Verdict | None
    number: int


def tally(store: Store) -> tuple[Tally, ...]:
    """All attempts, counted by state and verdict."""
    with store.read() as connection:
        rows = connection.execute(
            select(Attempt.state, GradeRecord.verdict, func.count())
            .outerjoin(GradeRecord, GradeRecord.attempt_id == Attempt.id)
            .group_by(Attempt.state, GradeRecord.verdict)
            .order_by(Attempt.state, GradeRecord.verdict)
        )
        return tuple(Tally(*row) for row in rows)
