"""Which learners of a course somebody is shown: all of them, or those of one section. Says nothing about who asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, or_, select
from sqlalchemy.orm import aliased

from grader.store.database import Store
from grader.store.tables import AttemptRow, CourseTaskRow, CreditRow, EnrolmentRow
from grader.store.tables.person import Role


@dataclass(frozen=True, slots=True)
class Learners:
    """Those who learn in a course now; `section` None: whatever section they are in."""

    section: str | None = None

    def conditions(self, enrolment: Any = EnrolmentRow) -> tuple[ColumnElement[bool], ...]:
        """For statements that have each person's enrolment."""
        learns = enrolment.role == Role.LEARNER
        return (learns,) if self.section is None else (learns, enrolment.section == self.section)

    def among(self, course_id: Any) -> ColumnElement[bool]:
        """For all others: whether an attempt counts for one of them, the sender or another of their group.

        A condition on `AttemptRow`; `course_id`: of the attempt, a column or a number.
        """
        enrolment, credit = aliased(EnrolmentRow), aliased(CreditRow)
        theirs = (enrolment.course_id == course_id, *self.conditions(enrolment))
        # Two lists, each made once where the course is a number: a condition on both at once is tried for each attempt.
        people = select(enrolment.person_id).where(*theirs)
        shared = (
            select(credit.submission_id)
            .join(enrolment, enrolment.person_id == credit.person_id)
            .where(*theirs)
        )
        return or_(
            AttemptRow.person_id.in_(people.correlate_except(enrolment)),
            AttemptRow.submission_id.in_(shared.correlate_except(enrolment, credit)),
        )


ALL_LEARNERS = Learners()


def is_among(store: Store, attempt_id: int, learners: Learners) -> bool:
    """Whether an attempt counts for one of these learners of its course."""
    found = (
        select(AttemptRow.id)
        .join(CourseTaskRow, CourseTaskRow.id == AttemptRow.course_task_id)
        .where(AttemptRow.id == attempt_id, learners.among(CourseTaskRow.course_id))
    )
    with store.read() as connection:
        return connection.execute(found).first() is not None
