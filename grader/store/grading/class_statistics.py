"""What an instructor wants to know of a class: which checks fail most (without names), who is stuck where.

And where the grader itself failed, which is theirs to set right and nobody else's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import and_, case, distinct, func, select
from sqlalchemy.orm import aliased

from grader.model.finding import Severity
from grader.model.grade import Verdict
from grader.store.courses.learners import ALL_LEARNERS, Learners
from grader.store.database import Store
from grader.store.grading.pseudonyms import key_column, pseudonym
from grader.store.tables import (
    AttemptRow,
    CourseTaskRow,
    EnrolmentRow,
    GradeCodeRow,
    PersonRow,
    StandingRow,
)
from grader.store.tables.attempt import AttemptState, Lane


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
class StuckLearner:
    """A learner who tries and is not accepted yet.

    Attributes:
        anonymous: login and name are a pseudonym, and person_id is nothing to be shown.
        num_attempts: judged ones; last_at, codes: of the last of them, with what gated it.
    """

    person_id: int
    login: str
    name: str
    course_task_id: int
    task: str
    num_attempts: int
    last_attempt_id: int
    last_at: datetime
    codes: tuple[str, ...]
    anonymous: bool = False


@dataclass(frozen=True, slots=True)
class HandedInCount:
    """How many people have handed something in for a task, the last attempt there, how many of them are accepted."""

    num_people: int
    last_attempt_id: int
    num_accepted: int


@dataclass(frozen=True, slots=True)
class JudgeFailures:
    """Attempts that ended as `judge_error`, and after which nothing of that learner's was judged in that task."""

    num_attempts: int
    last_at: datetime | None


def judge_failures(store: Store, course_id: int, learners: Learners | None = None) -> JudgeFailures:
    """Where a course still waits for somebody to look: what was judged later, or judged again, is settled.

    `learners`: whose attempts; None: everybody's.
    """
    later = aliased(AttemptRow)
    settled = select(later.id).where(
        later.course_task_id == AttemptRow.course_task_id,
        later.person_id == AttemptRow.person_id,
        later.id > AttemptRow.id,
        later.state == AttemptState.JUDGED,
    )
    with store.read() as connection:
        row = connection.execute(
            select(func.count(), func.max(AttemptRow.finished_at))
            .join(CourseTaskRow, CourseTaskRow.id == AttemptRow.course_task_id)
            .where(
                CourseTaskRow.course_id == course_id,
                AttemptRow.state == AttemptState.FAILED,
                ~settled.exists(),
                *(() if learners is None else (learners.among(course_id),)),
            )
        ).one()
    return JudgeFailures(*row)


def handed_in_counts(
    store: Store, course_id: int, learners: Learners = ALL_LEARNERS
) -> dict[int, HandedInCount]:
    """Per task of a course that something was handed in for, by the task's id there."""
    with store.read() as connection:
        rows = connection.execute(
            select(
                AttemptRow.course_task_id,
                func.count(distinct(AttemptRow.person_id)),
                func.max(AttemptRow.id),
                func.count(distinct(StandingRow.person_id)),
            )
            .outerjoin(
                StandingRow,
                and_(
                    StandingRow.course_task_id == AttemptRow.course_task_id,
                    StandingRow.person_id == AttemptRow.person_id,
                    StandingRow.verdict == Verdict.ACCEPTED,
                ),
            )
            .join(CourseTaskRow, CourseTaskRow.id == AttemptRow.course_task_id)
            .join(
                EnrolmentRow,
                and_(EnrolmentRow.course_id == course_id, EnrolmentRow.person_id == AttemptRow.person_id),
            )
            .where(
                CourseTaskRow.course_id == course_id,
                AttemptRow.lane == Lane.INTERACTIVE,
                *learners.conditions(),
            )
            .group_by(AttemptRow.course_task_id)
        )
        return {task_id: HandedInCount(*counted) for task_id, *counted in rows}


def code_counts(
    store: Store, course_task_id: int, learners: Learners = ALL_LEARNERS, *, with_hints: bool = False
) -> tuple[CodeCount, ...]:
    """Codes found in a task, those that most learners have now first; learners of the course only, without names."""
    last = (
        select(func.max(AttemptRow.id).label("id"))
        .where(
            AttemptRow.course_task_id == course_task_id,
            AttemptRow.state == AttemptState.JUDGED,
            AttemptRow.lane == Lane.INTERACTIVE,
        )
        .group_by(AttemptRow.person_id)
        .subquery()
    )
    severities = [Severity.ERROR, Severity.WARNING, *([Severity.HINT] if with_hints else [])]
    now = func.count(last.c.id)
    ever = func.count(distinct(GradeCodeRow.person_id))
    statement = (
        select(GradeCodeRow.code, func.count(), ever, now)
        .join(AttemptRow, AttemptRow.id == GradeCodeRow.attempt_id)
        .join(CourseTaskRow, CourseTaskRow.id == GradeCodeRow.course_task_id)
        .join(
            EnrolmentRow,
            and_(
                EnrolmentRow.course_id == CourseTaskRow.course_id,
                EnrolmentRow.person_id == GradeCodeRow.person_id,
            ),
        )
        .outerjoin(last, last.c.id == GradeCodeRow.attempt_id)
        .where(
            GradeCodeRow.course_task_id == course_task_id,
            GradeCodeRow.severity.in_(severities),
            AttemptRow.lane == Lane.INTERACTIVE,
            *learners.conditions(),
        )
        .group_by(GradeCodeRow.code)
        .order_by(now.desc(), ever.desc(), GradeCodeRow.code)
    )
    with store.read() as connection:
        return tuple(CodeCount(*row) for row in connection.execute(statement))


def stuck_learners(
    store: Store, course_id: int, learners: Learners = ALL_LEARNERS, *, min_attempts: int = 3
) -> tuple[StuckLearner, ...]:
    """Who has tried a task at least so often and is not accepted, the most tries first; in two statements."""
    tried = (
        select(
            AttemptRow.person_id,
            AttemptRow.course_task_id,
            func.count().label("num"),
            func.max(AttemptRow.id).label("last"),
        )
        .join(CourseTaskRow, CourseTaskRow.id == AttemptRow.course_task_id)
        .where(
            CourseTaskRow.course_id == course_id,
            CourseTaskRow.withdrawn_at.is_(None),
            AttemptRow.state == AttemptState.JUDGED,
            AttemptRow.lane == Lane.INTERACTIVE,
        )
        .group_by(AttemptRow.person_id, AttemptRow.course_task_id)
        .having(func.count() >= min_attempts)
        .subquery()
    )
    done = case((StandingRow.verdict == Verdict.ACCEPTED, 1), else_=0)
    statement = (
        select(
            PersonRow.id,
            PersonRow.login,
            PersonRow.name,
            CourseTaskRow.id,
            CourseTaskRow.task,
            tried.c.num,
            AttemptRow.id,
            AttemptRow.finished_at,
            key_column(CourseTaskRow.id),
        )
        .select_from(tried)
        .join(PersonRow, PersonRow.id == tried.c.person_id)
        .join(CourseTaskRow, CourseTaskRow.id == tried.c.course_task_id)
        .join(EnrolmentRow, and_(EnrolmentRow.course_id == course_id, EnrolmentRow.person_id == PersonRow.id))
        .join(AttemptRow, AttemptRow.id == tried.c.last)
        .outerjoin(
            StandingRow,
            and_(
                StandingRow.person_id == tried.c.person_id,
                StandingRow.course_task_id == tried.c.course_task_id,
            ),
        )
        .where(*learners.conditions(), func.coalesce(done, 0) == 0)
        .order_by(
            tried.c.num.desc(),
            # In the order of names pseudonyms would hide little.
            case((key_column(CourseTaskRow.id).is_(None), PersonRow.name), else_=None),
            CourseTaskRow.position,
        )
    )
    with store.read() as connection:
        rows: Sequence[Sequence[Any]] = connection.execute(statement).all()
        codes: dict[int, list[str]] = {}
        for attempt_id, code in connection.execute(
            select(GradeCodeRow.attempt_id, GradeCodeRow.code)
            .where(
                GradeCodeRow.attempt_id.in_([row[6] for row in rows]),
                GradeCodeRow.severity.in_([Severity.ERROR, Severity.WARNING]),
            )
            .order_by(GradeCodeRow.code)
        ):
            codes.setdefault(attempt_id, []).append(code)
    return tuple(_stuck(row, tuple(codes.get(row[6], ()))) for row in rows)


def _stuck(row: Sequence[Any], codes: tuple[str, ...]) -> StuckLearner:
    found, key = StuckLearner(*(*row[:-1], codes)), row[-1]
    if key is None:
        return found
    name = pseudonym(key, found.person_id)
    return replace(found, login=name, name=name, anonymous=True)
