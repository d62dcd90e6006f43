"""How many attempts there are of each kind, for operators. Says nothing about anybody."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select

from grader.model.grade import Verdict
from grader.store.database import Store
from grader.store.tables import AttemptRow, GradeRow
from grader.store.tables.attempt import AttemptState


@dataclass(frozen=True, slots=True)
class AttemptCount:
    """So many attempts in that state; `verdict` None: they have no grade."""

    state: AttemptState
    verdict: Verdict | None
    number: int


def count_attempts(store: Store) -> tuple[AttemptCount, ...]:
    """All attempts, counted by state and verdict."""
    with store.read() as connection:
        rows = connection.execute(
            select(AttemptRow.state, GradeRow.verdict, func.count())
            .outerjoin(GradeRow, GradeRow.attempt_id == AttemptRow.id)
            .group_by(AttemptRow.state, GradeRow.verdict)
            .order_by(AttemptRow.state, GradeRow.verdict)
        )
        return tuple(AttemptCount(*row) for row in rows)
