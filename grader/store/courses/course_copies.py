"""A course held once more: its tasks on the same terms, with dates moved to another term, and nobody but chosen staff.

How people grade in it comes along, with the library of comments; whom it talks to and what it told does not.

Dates keep their place in the day and, by whole weeks, in the week, as clocks on the wall of the course's zone show
them: what was due at 18:00 is due at 18:00, in summer and in winter.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, date, datetime, timedelta, tzinfo

from sqlalchemy import ColumnElement, Connection, insert, select
from sqlalchemy.exc import IntegrityError

from grader.errors import UsageError
from grader.store.clock import database_now
from grader.store.courses.courses import DEFAULT_ZONE, AssignedTask, CourseFacts, TaskTerms, read_tasks
from grader.store.courses.enrolments import enrol_within
from grader.store.database import Store
from grader.store.events import audit
from grader.store.tables import (
    Base,
    CommentEntryRow,
    CourseRow,
    CourseTaskRow,
    GradingRulesRow,
    RetentionRuleRow,
    TaskGradingRow,
)
from grader.store.tables.person import Role


@dataclass(frozen=True, slots=True)
class DateShift:
    """By how many days dates move, in which zone."""

    days: int
    zone: tzinfo

    def of(self, at: datetime | None) -> datetime | None:
        """That moment, moved; of an hour that clocks leave out on the new day, the hour after it."""
        if at is None:
            return None
        there = at.astimezone(self.zone).replace(tzinfo=None) + timedelta(days=self.days)
        return there.replace(tzinfo=self.zone).astimezone(UTC)

    def terms(self, terms: TaskTerms) -> TaskTerms:
        """The same terms at other dates."""
        return replace(terms, opens_at=self.of(terms.opens_at), due_at=self.of(terms.due_at))


@dataclass(frozen=True, slots=True)
class CoursePlan:
    """What the copy is called, how its dates move, and who teaches it, by id of the person."""

    name: str
    title: str
    about: str | None
    shift: DateShift
    staff: Collection[int] = ()


def first_day_of(tasks: Iterable[AssignedTask], zone: tzinfo) -> date | None:
    """The day of the first date that any of these tasks has; None: they have none."""
    dates = [at for one in tasks for at in (one.terms.opens_at, one.terms.due_at) if at is not None]
    return min(dates).astimezone(zone).date() if dates else None


def shift_to(
    tasks: Sequence[AssignedTask], zone: tzinfo, first_day: date, *, keep_weekdays: bool
) -> DateShift:
    """What moves the dates of these tasks so that the first lies on that day; or in its week, on its own weekday."""
    before = first_day_of(tasks, zone)
    if before is None:
        return DateShift(0, zone)
    if keep_weekdays:
        before, first_day = (day - timedelta(days=day.weekday()) for day in (before, first_day))
    return DateShift((first_day - before).days, zone)


def copied_tasks(tasks: Iterable[AssignedTask]) -> tuple[AssignedTask, ...]:
    """Those that a copy has: all but those that were withdrawn."""
    return tuple(one for one in tasks if not one.withdrawn)


def copy_course(store: Store, course: CourseFacts, plan: CoursePlan, *, actor_id: int | None) -> int:
    """Make the copy, a draft, and return its id.

    Raises:
        UsageError: there is a course of that name.
    """
    bank = course.late_bank
    try:
        with store.write() as connection:
            made = connection.execute(
                insert(CourseRow)
                .values(
                    name=plan.name,
                    title=plan.title,
                    about=plan.about,
                    created_at=database_now(),
                    draft_since=database_now(),
                    time_zone=None if course.time_zone == DEFAULT_ZONE else course.time_zone,
                    source=course.source,
                    file_name=course.file_name,
                    late_days_total=None if bank is None else bank.total,
                    late_days_per_task=None if bank is None else bank.per_task,
                )
                .returning(CourseRow.id)
            ).scalar_one()
            tasks = copied_tasks(read_tasks(connection, course.id))
            if tasks:
                connection.execute(
                    insert(CourseTaskRow),
                    [_values(made, position, one, plan.shift) for position, one in enumerate(tasks, start=1)],
                )
            _copy_grading(connection, course.id, made)
            for before, after in zip(tasks, read_tasks(connection, made), strict=True):
                whose = TaskGradingRow.course_task_id == before.id
                _copy_rows(connection, TaskGradingRow, whose, course_task_id=after.id)
            audit(connection, f"course:{made}", "course_copied", actor_id=actor_id, copied_from=course.id)
            for person_id in sorted(plan.staff):
                enrol_within(connection, made, person_id, Role.INSTRUCTOR, actor_id=actor_id)
            return int(made)
    except IntegrityError:
        raise UsageError(f"there is a course named {plan.name} already") from None


def _copy_grading(connection: Connection, course_id: int, made: int) -> None:
    key = secrets.token_hex(32)
    _copy_rows(
        connection, GradingRulesRow, GradingRulesRow.course_id == course_id, course_id=made, pseudonym_key=key
    )
    _copy_rows(connection, RetentionRuleRow, RetentionRuleRow.course_id == course_id, course_id=made)
    offered = (CommentEntryRow.course_id == course_id) & CommentEntryRow.retired_at.is_(None)
    _copy_rows(connection, CommentEntryRow, offered, course_id=made)


def _copy_rows(
    connection: Connection, table: type[Base], which: ColumnElement[bool], **changed: object
) -> None:
    """Rows of a table once more, with these values instead of theirs."""
    columns = [one for one in table.__table__.columns if one.name != "id"]
    rows = connection.execute(select(*columns).where(which).order_by(*columns)).mappings()
    copies = [{**row, **changed} for row in rows]
    if copies:
        connection.execute(insert(table), copies)


def _values(course_id: int, position: int, task: AssignedTask, shift: DateShift) -> dict[str, object]:
    terms = shift.terms(task.terms)
    return {field.name: getattr(terms, field.name) for field in fields(terms)} | {
        "course_id": course_id,
        "task": task.task,
        "profile": task.profile,
        "position": position,
        "draft_since": database_now() if task.draft else None,
        "offered_version": task.offered_version,
    }
