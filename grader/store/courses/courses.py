"""Courses and the tasks that they set. Who takes part is `enrolments`; the tasks themselves lie in their folders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlalchemy import Connection, bindparam, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from grader.errors import InfraError, UsageError
from grader.store.attempts.limits import LateBank
from grader.store.clock import database_now
from grader.store.courses.exam_freeze import refuse_during_exam
from grader.store.database import Store
from grader.store.delivery.notices import notify_dates
from grader.store.events import audit
from grader.store.grading.standings import recompute_standings
from grader.store.tables import CourseRow, CourseTaskRow
from grader.store.tables.course_task import LatePolicy

DEFAULT_ZONE = "UTC"


@dataclass(frozen=True, slots=True)
class TaskTerms:
    """On what terms a course sets a task; see `grader.store.tables.course_task`."""

    title: str
    version: str
    need: str = "cpu"
    weight: float = 1.0
    required: bool = True
    opens_at: datetime | None = None
    due_at: datetime | None = None
    late_policy: LatePolicy = LatePolicy.CLOSED
    late_loss: float = 0.0
    late_days: int | None = None
    max_per_day: int | None = None
    max_total: int | None = None
    max_concurrent: int | None = None
    hidden_until_due: bool = False
    grace_minutes: int | None = None
    exam_minutes: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.late_loss <= 1:
            raise ValueError("late_loss is a share, 0 to 1")
        if any(
            limit is not None and limit < 1
            for limit in (self.max_per_day, self.max_total, self.max_concurrent)
        ):
            raise ValueError("a limit below 1 would let nobody hand in; use opens_at for that")
        if self.exam_minutes is not None and (
            self.due_at is None or self.late_policy is not LatePolicy.CLOSED or self.exam_minutes < 1
        ):
            raise ValueError("an exam ends at a date, takes nothing late, and lasts a minute at least")


@dataclass(frozen=True, slots=True)
class AssignedTask:
    """A task of a course.

    Attributes:
        withdrawn: only its grades are left, see `task_withdrawal`.
        draft: learners do not know of it yet, see `task_drafts`.
        offered_version: a newer one that came with the course and waits for its staff, see `task_updates`.
        released: learners are told how their exam went, see `exams`.
    """

    id: int
    course_id: int
    task: str
    profile: str
    position: int
    withdrawn: bool
    draft: bool
    offered_version: str | None
    released: bool
    terms: TaskTerms

    @property
    def offered(self) -> bool:
        """Whether learners have it."""
        return not self.withdrawn and not self.draft


@dataclass(frozen=True, slots=True)
class CourseFacts:
    """A course.

    Attributes:
        time_zone: IANA name of the zone in which its staff writes dates.
        about: what it says of itself; None: what its course file says.
        source: where it came from; None: its tasks are those of the folder of tasks.
        draft: only its staff sees it yet; archived: it can be read, and nothing else.
        file_name: what its course file calls it.
        late_bank: late days that it gives each learner; None: none.
    """

    id: int
    name: str
    title: str
    closed: bool
    time_zone: str
    about: str | None
    source: str | None
    draft: bool = False
    archived: bool = False
    file_name: str = ""
    late_bank: LateBank | None = None

    @property
    def zone(self) -> tzinfo:
        """The same, to reckon with.

        Raises:
            InfraError: this machine does not know it.
        """
        try:
            return UTC if self.time_zone == DEFAULT_ZONE else ZoneInfo(self.time_zone)
        except ZoneInfoNotFoundError:
            raise InfraError(f"this machine knows no time zone {self.time_zone}: install tzdata") from None


def add_course(
    store: Store, name: str, title: str, *, draft: bool = False, actor_id: int | None = None
) -> int:
    """Make a course and return its id; `draft`: only its staff sees it, until it is published.

    Raises:
        UsageError: there is a course of that name.
    """
    try:
        with store.write() as connection:
            course_id = connection.execute(
                insert(CourseRow)
                .values(
                    name=name,
                    title=title,
                    created_at=database_now(),
                    draft_since=database_now() if draft else None,
                )
                .returning(CourseRow.id)
            ).scalar_one()
            audit(connection, f"course:{course_id}", "course_added", actor_id=actor_id)
            return course_id
    except IntegrityError:
        raise UsageError(f"there is a course named {name} already") from None


def courses(store: Store) -> tuple[CourseFacts, ...]:
    """All courses, by name."""
    with store.read() as connection:
        return tuple(_facts(row) for row in connection.execute(_COURSE.order_by(CourseRow.name)))


def course(store: Store, course_id: int) -> CourseFacts | None:
    """The course of that id, or None."""
    with store.read() as connection:
        row = connection.execute(_COURSE_OF_ID, {"course": course_id}).one_or_none()
    return None if row is None else _facts(row)


def set_task(
    store: Store,
    course_id: int,
    task: str,
    profile: str,
    terms: TaskTerms,
    *,
    draft: bool = False,
    actor_id: int | None = None,
) -> int:
    """Set a task at the end of a course, or change the terms of one that is set; returns its id there.

    `draft`: one that is new there is not shown to learners yet.

    What was judged stays judged by the version of its time (`regrades` judge again); who stands where follows the
    new dates.

    Raises:
        ExamRunsError: it is an exam that is on.
    """
    values = {field.name: getattr(terms, field.name) for field in fields(terms)}
    with store.write() as connection:
        # Of two instructors who add the same task at once, the second waits here and then changes it.
        lock_course(connection, course_id)
        there = connection.execute(
            select(CourseTaskRow.id, CourseTaskRow.opens_at, CourseTaskRow.due_at).where(
                CourseTaskRow.course_id == course_id,
                CourseTaskRow.task == task,
                CourseTaskRow.profile == profile,
            )
        ).one_or_none()
        if there is not None:
            found = int(there.id)
            refuse_during_exam(connection, found)
            connection.execute(update(CourseTaskRow).where(CourseTaskRow.id == found).values(**values))
            recompute_standings(connection, found)
            if (there.opens_at, there.due_at) != (terms.opens_at, terms.due_at):
                notify_dates(connection, found)
        else:
            last = connection.execute(
                select(func.coalesce(func.max(CourseTaskRow.position), 0)).where(
                    CourseTaskRow.course_id == course_id
                )
            ).scalar_one()
            found = connection.execute(
                insert(CourseTaskRow)
                .values(
                    course_id=course_id,
                    task=task,
                    profile=profile,
                    position=last + 1,
                    draft_since=database_now() if draft else None,
                    **values,
                )
                .returning(CourseTaskRow.id)
            ).scalar_one()
        audit(
            connection, f"course:{course_id}", "task_set", actor_id=actor_id, task=task, version=terms.version
        )
        return found


def lock_course(connection: Connection, course_id: int) -> None:
    """Let nobody else change the course, its tasks or who stands where in them before this transaction ends.

    Whoever also locks a task of the course takes this lock first.
    """
    connection.execute(
        select(CourseRow.id).where(CourseRow.id == course_id).with_for_update(key_share=True)
    ).scalar_one()


def tasks_of(store: Store, course_id: int) -> tuple[AssignedTask, ...]:
    """A course's tasks in their order, those that were withdrawn among them."""
    with store.read() as connection:
        return read_tasks(connection, course_id)


def course_task(store: Store, course_task_id: int) -> AssignedTask | None:
    """One task of a course, or None."""
    with store.read() as connection:
        row = connection.execute(_SET_TASK.where(CourseTaskRow.id == course_task_id)).one_or_none()
    return None if row is None else _assigned(row)


def read_tasks(connection: Connection, course_id: int) -> tuple[AssignedTask, ...]:
    """A course's tasks in their order, within a transaction of the caller's."""
    rows: Iterable[Sequence[Any]] = connection.execute(_TASKS_OF_COURSE, {"course": course_id})
    return tuple(map(_assigned, rows))


def _assigned(row: Sequence[Any]) -> AssignedTask:
    return AssignedTask(*(*row[:_NUM_OWN], TaskTerms(*row[_NUM_OWN:])))


def _facts(row: Sequence[Any]) -> CourseFacts:
    total, per_task = row[-2:]
    return CourseFacts(*(*row[:-2], None if total is None else LateBank(total, per_task)))


_COURSE = select(
    CourseRow.id,
    CourseRow.name,
    CourseRow.title,
    CourseRow.closed_at.is_not(None),
    func.coalesce(CourseRow.time_zone, DEFAULT_ZONE),
    CourseRow.about,
    CourseRow.source,
    CourseRow.draft_since.is_not(None),
    CourseRow.archived_at.is_not(None),
    func.coalesce(CourseRow.file_name, CourseRow.name),
    CourseRow.late_days_total,
    CourseRow.late_days_per_task,
).where(CourseRow.deleted_at.is_(None))
# Made once: every page of a course asks for it, and making them takes longer than running them.
_COURSE_OF_ID = _COURSE.where(CourseRow.id == bindparam("course"))
_NUM_OWN = len(fields(AssignedTask)) - 1
_SET_TASK = select(
    CourseTaskRow.id,
    CourseTaskRow.course_id,
    CourseTaskRow.task,
    CourseTaskRow.profile,
    CourseTaskRow.position,
    CourseTaskRow.withdrawn_at.is_not(None),
    CourseTaskRow.draft_since.is_not(None),
    CourseTaskRow.offered_version,
    CourseTaskRow.released_at.is_not(None),
    *(getattr(CourseTaskRow, field.name) for field in fields(TaskTerms)),
)
_TASKS_OF_COURSE = _SET_TASK.where(CourseTaskRow.course_id == bindparam("course")).order_by(
    CourseTaskRow.position, CourseTaskRow.id
)
