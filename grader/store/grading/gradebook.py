"""The gradebook: people × tasks of a course, and when a learner is told how they did. Changes nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, func, select

from grader.model.attempt_result import AttemptResult
from grader.model.grade import Verdict
from grader.store.attempts.attempt_results import JUDGED_ATTEMPTS, RESULT_COLUMNS, result_of
from grader.store.attempts.limits import UNRELEASED
from grader.store.clock import database_now
from grader.store.courses.courses import AssignedTask, read_tasks
from grader.store.courses.learners import ALL_LEARNERS, Learners
from grader.store.database import Store
from grader.store.grading.pseudonyms import pseudonym, read_anonymous_tasks
from grader.store.tables import (
    AttemptRow,
    CourseTaskRow,
    CreditRow,
    EnrolmentRow,
    ExtensionRow,
    PersonRow,
    StandingRow,
)
from grader.store.tables.attempt import Lane


@dataclass(frozen=True, slots=True)
class GradebookCell:
    """Where one learner stands in one task; `attempt_id` None: handed in, nothing judged yet."""

    num_attempts: int
    attempt_id: int | None = None
    result: AttemptResult | None = None

    @property
    def verdict(self) -> Verdict | None:
        """What it counts as."""
        return None if self.result is None else self.result.verdict

    @property
    def points(self) -> float:
        """What counts."""
        return 0.0 if self.result is None else self.result.points


@dataclass(frozen=True, slots=True)
class GradebookLine:
    """One learner: a cell per task that they have handed something in for, by the task's id in the course."""

    person_id: int
    login: str
    name: str
    cells: dict[int, GradebookCell]


@dataclass(frozen=True, eq=False)
class Gradebook:
    """People × tasks of one course; one that is made again is another, whatever it says."""

    tasks: tuple[AssignedTask, ...]
    rows: tuple[GradebookLine, ...]


def gradebook(
    store: Store,
    course_id: int,
    learners: Learners = ALL_LEARNERS,
    *,
    person_id: int | None = None,
    anonymous: bool = False,
) -> Gradebook:
    """The gradebook of a course, in six statements however many people and attempts there are.

    Of tasks that are graded by name, with names; or (`anonymous`) of those that are not, with pseudonyms: a line that
    had both would tell who is who. Its people are in the order of what they are called there.

    `learners`: those who stand in it; `person_id`: of them that one alone.
    """

    def of(column: Any) -> tuple[ColumnElement[bool], ...]:
        return () if person_id is None else (column == person_id,)

    with store.read() as connection:
        hidden = read_anonymous_tasks(connection, course_id)
        tasks = tuple(one for one in read_tasks(connection, course_id) if (one.id in hidden) is anonymous)
        ids = [task.id for task in tasks]
        people = connection.execute(
            select(PersonRow.id, PersonRow.login, PersonRow.name)
            .join(EnrolmentRow, EnrolmentRow.person_id == PersonRow.id)
            .where(EnrolmentRow.course_id == course_id, *learners.conditions(), *of(PersonRow.id))
            .order_by(PersonRow.name, PersonRow.id)
        ).all()
        # Whole lists at once, and a cell made once: of both there are thousands.
        counts: dict[tuple[int, int], int] = {
            (learner, task_id): number
            for learner, task_id, number in connection.execute(
                select(AttemptRow.person_id, AttemptRow.course_task_id, func.count())
                .where(
                    AttemptRow.course_task_id.in_(ids),
                    AttemptRow.lane == Lane.INTERACTIVE,
                    *of(AttemptRow.person_id),
                )
                .group_by(AttemptRow.course_task_id, AttemptRow.person_id)
            ).all()
        }
        # By the few credits that groups have, not by all attempts of the tasks: `+ 0` hides the indexes for that.
        for credited, task_id, number in connection.execute(
            select(CreditRow.person_id, AttemptRow.course_task_id, func.count())
            .join(AttemptRow, AttemptRow.submission_id == CreditRow.submission_id + 0)
            .where(
                (AttemptRow.course_task_id + 0).in_(ids),
                AttemptRow.lane == Lane.INTERACTIVE,
                *of(CreditRow.person_id),
            )
            .group_by(AttemptRow.course_task_id, CreditRow.person_id)
        ).all():
            counts[credited, task_id] = counts.get((credited, task_id), 0) + number
        standings = connection.execute(
            select(
                StandingRow.person_id,
                StandingRow.course_task_id,
                StandingRow.attempt_id,
                *RESULT_COLUMNS,
            )
            .select_from(JUDGED_ATTEMPTS)
            .join(StandingRow, StandingRow.attempt_id == AttemptRow.id)
            .where(StandingRow.course_task_id.in_(ids), *of(StandingRow.person_id))
        ).all()
    cells: dict[int, dict[int, GradebookCell]] = {}
    for row in standings:
        learner, task_id, attempt_id = row[:3]
        number = counts.pop((learner, task_id), 0)
        cells.setdefault(learner, {})[task_id] = GradebookCell(number, attempt_id, result_of(row))
    for (learner, task_id), number in counts.items():
        cells.setdefault(learner, {})[task_id] = GradebookCell(number)
    lines = (GradebookLine(one.id, one.login, one.name, cells.get(one.id, {})) for one in people)
    if not anonymous:
        return Gradebook(tasks, tuple(lines))
    # Of one course: it has one key, or none where nothing is graded so.
    named = (
        replace(line, login=name, name=name)
        for key in set(hidden.values())
        for line in lines
        for name in [pseudonym(key, line.person_id)]
    )
    return Gradebook(tasks, tuple(sorted(named, key=lambda line: line.name)))


def feedback_opens_at(store: Store, course_task_id: int, person_id: int) -> datetime | None:
    """Until when a learner is not told how they did, where the task hides that until it is due; None: told already.

    Of an exam `limits.UNRELEASED`, until its results are released.
    """
    with store.read() as connection:
        row = connection.execute(
            select(
                CourseTaskRow.hidden_until_due,
                CourseTaskRow.exam_minutes,
                CourseTaskRow.released_at,
                CourseTaskRow.due_at,
                ExtensionRow.due_at.label("extended"),
                database_now().label("now"),
            )
            .outerjoin(
                EnrolmentRow,
                and_(EnrolmentRow.course_id == CourseTaskRow.course_id, EnrolmentRow.person_id == person_id),
            )
            .outerjoin(
                ExtensionRow,
                and_(
                    ExtensionRow.enrolment_id == EnrolmentRow.id,
                    ExtensionRow.course_task_id == CourseTaskRow.id,
                ),
            )
            .where(CourseTaskRow.id == course_task_id)
        ).one_or_none()
    if row is not None and row.exam_minutes is not None:
        return UNRELEASED if row.released_at is None else None
    if row is None or not row.hidden_until_due:
        return None
    due: datetime | None = row.extended or row.due_at
    return due if due is not None and row.now <= due else None
