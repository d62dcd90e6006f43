"""What an instructor wants to know of a class: which checks fail most (without names), who is stuck where.

And where the grader itself failed, which is theirs to set right and nobody else's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import and_, case, distinct, func, select
from sqlalchemy.orm import aliased

from grader.model.finding import Severity
from grader.model.grade import Verdict
from grader.store.database import Store
from grader.store.tables import (
    Attempt,
    CourseTask,
    Enrolment,
    GradeCode,
    GradeRecord,
    Person,
    Standing,
)
from grader.store.tables.attempt import AttemptState, Lane
from grader.store.tables.person import Role


@dataclass(frozen=True, slots=True)
class CodeCount:
    """How often a code was found in one task.

    Attributes:
        num_attempts, num_learners: judged attempts and learners who ever had it.
        num_now: learners whose last judged attempt still has it.
    """

    code: str
    num_attempts: int
    num_learners: int
    num_now: int


@dataclass(frozen=True, slots=True)
class Stuck:
    """A learner who tries and is not accepted yet.

    Attributes:
        num_attempts: judged ones; last_at, last_verdict, codes: of the last of them, with what gated it.
    """

    person_id: int
    login: str
    name: str
    course_task_id: int
    task: str
    num_attempts: int
    last_attempt_id: int
    last_at: datetime
    last_verdict: Verdict
    codes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HandedInCount:
    """How many people have handed something in for a task, and the last attempt there: what a class works on now."""

    num_people: int
    last_attempt_id: int


@dataclass(frozen=True, slots=True)
class Failures:
    """Attempts that ended as `judge_error`, and after which nothing of that learner's was judged in that task."""

    num_attempts: int
    last_at: datetime | None


def failures(store: Store, course_id: int) -> Failures:
    """Where a course still waits for somebody to look: what was judged later, or judged again, is settled."""
    later = aliased(Attempt)
    settled = select(later.id).where(
        later.course_task_id == Attempt.course_task_id,
        later.person_id == Attempt.person_id,
        later.id > Attempt.id,
        later.state == AttemptState.JUDGED,
    )
    with store.read() as connection:
        row = connection.execute(
            select(func.count(), func.max(Attempt.finished_at))
            .join(CourseTask, CourseTask.id == Attempt.course_task_id)
            .where(
                CourseTask.course_id == course_id,
                Attempt.state == AttemptState.FAILED,
                ~settled.exists(),
            )
        ).one()
    return Failures(*row)


def handed_in(store: Store, course_id: int) -> dict[int, HandedInCount]:
    """Per task of a course that something was handed in for, by the task's id there."""
    with store.read() as connection:
        rows = connection.execute(
            select(Attempt.course_task_id, func.count(distinct(Attempt.person_id)), func.max(Attempt.id))
            .join(CourseTask, CourseTask.id == Attempt.course_task_id)
            .join(
                Enrolment,
                and_(Enrolment.course_id == course_id, Enrolment.person_id == Attempt.person_id),
            )
            .where(
                CourseTask.course_id == course_id,
                Attempt.lane == Lane.INTERACTIVE,
                Enrolment.role == Role.LEARNER,
            )
            .group_by(Attempt.course_task_id)
        )
        return {task_id: HandedInCount(number, last) for task_id, number, last in rows}


def class_view(store: Store, course_task_id: int, *, with_hints: bool = False) -> tuple[CodeCount, ...]:
    """Codes found in a task, those that most learners have now first; learners of the course only, without names."""
    last = (
        select(func.max(Attempt.id).label("id"))
        .where(
            Attempt.course_task_id == course_task_id,
            Attempt.state == AttemptState.JUDGED,
            Attempt.lane == Lane.INTERACTIVE,
        )
        .group_by(Attempt.person_id)
        .subquery()
    )
    severities = [Severity.ERROR, Severity.WARNING, *([Severity.HINT] if with_hints else [])]
    now = func.count(last.c.id)
    learners = func.count(distinct(GradeCode.person_id))
    statement = (
        select(GradeCode.code, func.count(), learners, now)
        .join(Attempt, Attempt.id == GradeCode.attempt_id)
        .join(CourseTask, CourseTask.id == GradeCode.course_task_id)
        .join(
            Enrolment,
            and_(Enrolment.course_id == CourseTask.course_id, Enrolment.person_id == GradeCode.person_id),
        )
        .outerjoin(last, last.c.id == GradeCode.attempt_id)
        .where(
            GradeCode.course_task_id == course_task_id,
            GradeCode.severity.in_(severities),
            Attempt.lane == Lane.INTERACTIVE,
            Enrolment.role == Role.LEARNER,
        )
        .group_by(GradeCode.code)
        .order_by(now.desc(), learners.desc(), GradeCode.code)
    )
    with store.read() as connection:
        return tuple(CodeCount(*row) for row in connection.execute(statement))


def stuck(store: Store, course_id: int, *, min_attempts: int = 3) -> tuple[Stuck, ...]:
    """Who has tried a task at least so often and is not accepted, the most tries first; in two statements."""
    tried = (
        select(
            Attempt.person_id,
            Attempt.course_task_id,
            func.count().label("num"),
            func.max(Attempt.id).label("last"),
        )
        .join(CourseTask, CourseTask.id == Attempt.course_task_id)
        .where(
            CourseTask.course_id == course_id,
            CourseTask.withdrawn_at.is_(None),
            Attempt.state == AttemptState.JUDGED,
            Attempt.lane == Lane.INTERACTIVE,
        )
        .group_by(Attempt.person_id, Attempt.course_task_id)
        .having(func.count() >= min_attempts)
        .subquery()
    )
    done = case((Standing.verdict == Verdict.ACCEPTED, 1), else_=0)
    statement = (
        select(
            Person.id,
            Person.login,
            Person.name,
            CourseTask.id,
            CourseTask.task,
            tried.c.num,
            Attempt.id,
            Attempt.finished_at,
            GradeRecord.verdict,
        )
        .select_from(tried)
        .join(Person, Person.id == tried.c.person_id)
        .join(CourseTask, CourseTask.id == tried.c.course_task_id)
        .join(Enrolment, and_(Enrolment.course_id == course_id, Enrolment.person_id == Person.id))
        .join(Attempt, Attempt.id == tried.c.last)
        .join(GradeRecord, GradeRecord.attempt_id == Attempt.id)
        .outerjoin(
            Standing,
            and_(Standing.person_id == tried.c.person_id, Standing.course_task_id == tried.c.course_task_id),
        )
        .where(Enrolment.role == Role.LEARNER, func.coalesce(done, 0) == 0)
        .order_by(tried.c.num.desc(), Person.name, CourseTask.position)
    )
    with store.read() as connection:
        rows: Sequence[Sequence[Any]] = connection.execute(statement).all()
        codes: dict[int, list[str]] = {}
        for attempt_id, code in connection.execute(
            select(GradeCode.attempt_id, GradeCode.code)
            .where(
                GradeCode.attempt_id.in_([row[6] for row in rows]),
                GradeCode.severity.in_([Severity.ERROR, Severity.WARNING]),
            )
            .order_by(GradeCode.code)
        ):
            codes.setdefault(attempt_id, []).append(code)
    return tuple(Stuck(*(*row, tuple(codes.get(row[6], ())))) for row in rows)
