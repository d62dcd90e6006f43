"""The learners of a course as other systems know them: address, section, external id. Changes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select

from grader.store.database import Store
from grader.store.tables import EnrolmentRow, PersonRow
from grader.store.tables.person import Role


@dataclass(frozen=True, slots=True)
class RegisteredLearner:
    """One learner of a course; `external_id`: what another system calls them, such as a student number."""

    person_id: int
    login: str
    name: str
    email: str | None
    section: str | None
    external_id: str | None


def register_of(store: Store, course_id: int) -> tuple[RegisteredLearner, ...]:
    """All who learn in a course now, by name."""
    statement = (
        select(
            PersonRow.id,
            PersonRow.login,
            PersonRow.name,
            PersonRow.email,
            EnrolmentRow.section,
            EnrolmentRow.external_id,
        )
        .join(EnrolmentRow, EnrolmentRow.person_id == PersonRow.id)
        .where(EnrolmentRow.course_id == course_id, EnrolmentRow.role == Role.LEARNER)
        .order_by(PersonRow.name, PersonRow.id)
    )
    with store.read() as connection:
        return tuple(RegisteredLearner(*row) for row in connection.execute(statement))
