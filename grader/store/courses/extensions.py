"""More time and more attempts at a task: for one learner, for some, or for everybody who takes part now.

Changes no task's own date or limit. What was handed in late before is so no longer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from grader.errors import UsageError
from grader.store.courses.courses import lock_course
from grader.store.database import Store
from grader.store.delivery.notices import notify_dates
from grader.store.events import audit
from grader.store.grading.standings import recompute_standings
from grader.store.tables import CourseTaskRow, EnrolmentRow, ExtensionRow, PersonRow
from grader.store.tables.person import Role

_EXTRAS = ("extra_total", "extra_per_day", "extra_minutes")


@dataclass(frozen=True, slots=True)
class Extension:
    """What learners get at a task; None: what they have of it stays.

    Attributes:
        due_at: their own due date; of an exam, when it closes for them.
        extra_total, extra_per_day: attempts beside those that everybody has, where these are limited.
        extra_minutes: of an exam, beside its own time.
        reason: for the audit, and for staff who look later.
    """

    due_at: datetime | None = None
    extra_total: int | None = None
    extra_per_day: int | None = None
    extra_minutes: int | None = None
    reason: str = ""

    @property
    def gives_anything(self) -> bool:
        """Whether there is anything in it but a reason."""
        return any(getattr(self, name) is not None for name in ("due_at", *_EXTRAS))


@dataclass(frozen=True, slots=True)
class StoredExtension:
    """What one learner has at one task of a course."""

    course_task_id: int
    person_id: int
    login: str
    name: str
    given: Extension


def extend(
    store: Store,
    course_task_id: int,
    given: Extension,
    *,
    person_ids: Collection[int] | None = None,
    actor_id: int | None,
) -> int:
    """Give it to these people, or (None) to all learners who take part now; returns to how many.

    To all, nobody loses: who has a later date or more attempts keeps them.

    Raises:
        UsageError: there is no such task, or one of them doesn't take part; nothing was given to anybody.
    """
    with store.write() as connection:
        return extend_within(connection, course_task_id, given, person_ids, actor_id=actor_id)


def extend_within(
    connection: Connection,
    course_task_id: int,
    given: Extension,
    person_ids: Collection[int] | None,
    *,
    actor_id: int | None,
) -> int:
    """As `extend`, within a transaction of the caller's."""
    course_id = _course_of(connection, course_task_id)
    if course_id is None:
        raise UsageError(f"there is no task {course_task_id} in any course")
    lock_course(connection, course_id)
    enrolments = _enrolments(connection, course_id, person_ids)
    if person_ids is not None and (missing := set(person_ids) - set(enrolments)):
        raise UsageError(f"person {min(missing)} takes no part in this course")
    there = {
        row.enrolment_id: row._asdict()
        for row in connection.execute(
            select(
                ExtensionRow.enrolment_id,
                ExtensionRow.due_at,
                ExtensionRow.reason,
                *(getattr(ExtensionRow, name) for name in _EXTRAS),
            ).where(ExtensionRow.course_task_id == course_task_id)
        )
    }
    values = {
        one: _given(there.get(one), given, nobody_loses=person_ids is None) for one in enrolments.values()
    }
    changed = {one: new for one, new in values.items() if new is not None}
    connection.execute(
        delete(ExtensionRow).where(
            ExtensionRow.course_task_id == course_task_id, ExtensionRow.enrolment_id.in_(list(changed))
        )
    )
    if changed:
        connection.execute(
            insert(ExtensionRow),
            [{"enrolment_id": one, "course_task_id": course_task_id, **new} for one, new in changed.items()],
        )
        theirs = [person_id for person_id, one in enrolments.items() if one in changed]
        recompute_standings(connection, course_task_id, None if person_ids is None else theirs)
        if given.due_at is not None:
            notify_dates(connection, course_task_id, theirs)
    told = {name: value for name, value in asdict(given).items() if value is not None and name != "due_at"}
    if given.due_at is not None:
        told["due_at"] = given.due_at.isoformat()
    whom: dict[str, Any] = {"person_id": None}
    if person_ids is not None and len(person_ids) == 1:
        whom = {"person_id": next(iter(person_ids))}
    elif person_ids is not None:
        whom = {"person_ids": sorted(person_ids)}
    audit(
        connection,
        f"course:{course_id}",
        "due_date_moved" if given.due_at is not None else "extended",
        actor_id=actor_id,
        course_task_id=course_task_id,
        **whom,
        **told,
    )
    return len(changed)


def _given(
    before: Mapping[str, Any] | None, given: Extension, *, nobody_loses: bool
) -> dict[str, Any] | None:
    """What one learner has afterwards; None: nothing changes for them."""
    new: dict[str, Any] = {}
    for name in ("due_at", *_EXTRAS):
        old, value = None if before is None else before[name], getattr(given, name)
        if nobody_loses and value is not None and old is not None:
            value = max(old, value)
        # Nothing more is what everybody has.
        new[name] = (old if value is None else value) or None
    if before is not None and nobody_loses and all(before[name] == new[name] for name in new):
        return None
    return new | {"reason": given.reason or ("" if before is None else before["reason"])}


def extensions_of(store: Store, course_id: int) -> tuple[StoredExtension, ...]:
    """All extensions of a course, by task, then by name."""
    with store.read() as connection:
        rows = connection.execute(
            select(
                ExtensionRow.course_task_id,
                PersonRow.id,
                PersonRow.login,
                PersonRow.name,
                ExtensionRow.due_at,
                *(getattr(ExtensionRow, name) for name in _EXTRAS),
                ExtensionRow.reason,
            )
            .join(EnrolmentRow, EnrolmentRow.id == ExtensionRow.enrolment_id)
            .join(PersonRow, PersonRow.id == EnrolmentRow.person_id)
            .join(CourseTaskRow, CourseTaskRow.id == ExtensionRow.course_task_id)
            .where(EnrolmentRow.course_id == course_id)
            .order_by(CourseTaskRow.position, PersonRow.name, PersonRow.id)
        )
        return tuple(StoredExtension(*(*row[:4], Extension(*row[4:]))) for row in rows)


def retract_extension(store: Store, course_task_id: int, person_id: int, *, actor_id: int | None) -> bool:
    """Let what everybody has hold again for one learner; False: they had nothing else."""
    with store.write() as connection:
        course_id = _course_of(connection, course_task_id)
        theirs = select(EnrolmentRow.id).where(
            EnrolmentRow.course_id == course_id, EnrolmentRow.person_id == person_id
        )
        gone = connection.execute(
            delete(ExtensionRow).where(
                ExtensionRow.course_task_id == course_task_id, ExtensionRow.enrolment_id.in_(theirs)
            )
        ).rowcount
        if gone:
            recompute_standings(connection, course_task_id, [person_id])
            notify_dates(connection, course_task_id, [person_id])
            audit(
                connection,
                f"course:{course_id}",
                "extension_retracted",
                actor_id=actor_id,
                course_task_id=course_task_id,
                person_id=person_id,
            )
        return bool(gone)


def _course_of(connection: Connection, course_task_id: int) -> int | None:
    return connection.execute(
        select(CourseTaskRow.course_id).where(CourseTaskRow.id == course_task_id)
    ).scalar_one_or_none()


def _enrolments(connection: Connection, course_id: int, person_ids: Collection[int] | None) -> dict[int, int]:
    """Person → enrolment. Ordered and locked, so that two extensions at once cannot both find that there is none."""
    whom = EnrolmentRow.role == Role.LEARNER
    if person_ids is not None:
        whom = EnrolmentRow.person_id.in_(person_ids)
    rows: Sequence[Any] = connection.execute(
        select(EnrolmentRow.person_id, EnrolmentRow.id)
        .where(EnrolmentRow.course_id == course_id, whom)
        .order_by(EnrolmentRow.id)
        .with_for_update()
    ).all()
    return {row.person_id: row.id for row in rows}
