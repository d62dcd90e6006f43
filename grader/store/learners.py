"""Which learners of a course somebody is shown: all of them, or those of one section. Says nothing about who asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, select

from grader.store.tables import EnrolmentRow
from grader.store.tables.person import Role


@dataclass(frozen=True, slots=True)
class Learners:
    """Those who learn in a course now; `section` None: whatever section they are in."""

    section: str | None = None

    def conditions(self) -> tuple[ColumnElement[bool], ...]:
        """For statements that have each person's enrolment."""
        learns = EnrolmentRow.role == Role.LEARNER
        return (learns,) if self.section is None else (learns, EnrolmentRow.section == self.section)

    def among(self, course_id: Any, person_id: Any) -> ColumnElement[bool]:
        """For all others: whether the person of that column is one of them in the course of that column."""
        there = select(EnrolmentRow.id).where(
            EnrolmentRow.course_id == course_id, EnrolmentRow.person_id == person_id, *self.conditions()
        )
        return there.exists()


ALL_LEARNERS = Learners()
