"""What an instructor wants to know of a class: which checks fail most (without names), who is stuck where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import and_, case, distinct, func, select

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
