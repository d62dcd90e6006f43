"""What platforms are told of grades: which of them changed, and what is said of one when its turn comes.

A change is noted where a standing is written, in the same transaction, and queued as a delivery. What is delivered says
what holds at that moment, under a later time than all before it: however late or often a message arrives, the last one
that a platform takes is the right one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from sqlalchemy import ColumnElement, Connection, Row, and_, bindparam, delete, select, update

from grader.model.grade import Verdict
from grader.store.clock import database_now, now
from grader.store.database import Store
from grader.store.delivery.deliveries import enqueue
from grader.store.grading.pseudonyms import key_column
from grader.store.tables import (
    CourseTaskRow,
    EnrolmentRow,
    LtiContextRow,
    LtiLineItemRow,
    LtiMemberRow,
    LtiPlatformRow,
    LtiScoreRow,
    StandingRow,
)
from grader.store.tables.person import Role
from grader.store.upsert import upsert

CHANNEL = "lti_grade"
SCORE_SCOPE = "https://purl.imsglobal.org/spec/lti-ags/scope/score"
NOTHING = "nothing judged"
_APART = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class ScoreMessage:
    """What a platform is to be told now.

    Attributes:
        subject: the person, as the platform calls them; says: the grade in words.
        verdict: None: nothing counts for them any more; points, max_points: then 0.
        revision: which change it tells, for `score_sent`.
        at: the time that the message bears.
        line_item_url: the column, None: it is still to be found or made in `line_items_url`.
    """

    context_id: int
    platform_id: int
    course_task_id: int
    person_id: int
    subject: str
    says: str
    verdict: Verdict | None
    points: float
    max_points: float
    revision: int
    at: datetime
    line_items_url: str | None
    line_item_url: str | None
    title: str
    due_at: datetime | None
    scopes: tuple[str, ...]


def note_scores(
    connection: Connection,
    course_task_id: int,
    person_ids: Collection[int] | None = None,
    *,
    again: bool = False,
) -> int:
    """Queue what the platforms do not know yet of a task's standings; returns for how many people.

    `person_ids` None: of everybody; `again`: what they know, too.
    """
    changed = 0
    for row in _standings(connection, course_task_id, person_ids):
        says = _says(row)
        known = row.says if row.says is not None else NOTHING
        if SCORE_SCOPE not in row.scopes or (says == known and not (again and row.says is not None)):
            continue
        key = {
            "context_id": row.context_id,
            "person_id": row.person_id,
            "course_task_id": course_task_id,
        }
        revision = (row.revision or 0) + 1
        values = {**key, "says": says, "revision": revision, "sent_revision": row.sent_revision or 0}
        connection.execute(upsert(connection, LtiScoreRow, list(key), values, update=["says", "revision"]))
        enqueue(
            connection,
            CHANNEL,
            f"platform:{row.platform_id}",
            {**key, "revision": revision, "topic": f"task:{course_task_id} person:{row.person_id}"},
            # What is said twice is known by its revision; of ids a database may give one twice.
            key=f"{CHANNEL}:{uuid4()}",
            course_id=row.course_id,
        )
        changed += 1
    return changed


def send_all(store: Store, course_id: int) -> int:
    """Tell the platforms of a course all that they should know, once more; returns how many grades."""
    with store.write() as connection:
        tasks = connection.execute(select(CourseTaskRow.id).where(CourseTaskRow.course_id == course_id))
        return sum(note_scores(connection, one, again=True) for one in tasks.scalars().all())


def tell_platform_again(store: Store, platform_id: int) -> None:
    """Tell a platform all that it should know, which missed some of it while it was switched off."""
    with store.read() as connection:
        courses = connection.execute(
            select(LtiContextRow.course_id).where(LtiContextRow.platform_id == platform_id).distinct()
        ).scalars()
        found = list(courses)
    for course_id in found:
        send_all(store, course_id)


def score_to_send(
    store: Store, context_id: int, person_id: int, course_task_id: int, revision: int
) -> ScoreMessage | None:
    """What to tell now of that person; None: it was told with a later change, or there is nobody to tell it to."""
    with store.write() as connection:
        # Two who send at once take turns: the later message says what holds then.
        connection.execute(
            select(LtiScoreRow.revision).where(*_of(context_id, person_id, course_task_id)).with_for_update()
        ).one_or_none()
        rows = _standings(connection, course_task_id, [person_id])
        row = next((one for one in rows if one.context_id == context_id), None)
        if row is None or row.sent_revision is None or row.sent_revision >= revision:
            return None
        at = now(connection)
        if row.stamped_at is not None and at <= row.stamped_at:
            at = row.stamped_at + _APART
        theirs = _of(context_id, person_id, course_task_id)
        connection.execute(update(LtiScoreRow).where(*theirs).values(stamped_at=at))
        return ScoreMessage(
            context_id=context_id,
            platform_id=row.platform_id,
            course_task_id=course_task_id,
            person_id=person_id,
            subject=row.subject,
            says=_says(row),
            verdict=row.verdict,
            points=row.points or 0.0,
            max_points=row.max_points or 0.0,
            revision=row.revision,
            at=at,
            line_items_url=row.line_items_url,
            line_item_url=row.line_item_url,
            title=row.title,
            due_at=row.due_at,
            scopes=tuple(row.scopes),
        )


def score_sent(store: Store, told: ScoreMessage) -> None:
    """Note that the platform took it."""
    with store.write() as connection:
        connection.execute(
            update(LtiScoreRow)
            .where(
                *_of(told.context_id, told.person_id, told.course_task_id),
                LtiScoreRow.sent_revision < told.revision,
            )
            .values(sent_revision=told.revision, sent_at=database_now())
        )


def set_line_item(connection: Connection, context_id: int, course_task_id: int, url: str) -> None:
    """Remember which column of a platform's gradebook is a task's."""
    key = {"context_id": context_id, "course_task_id": course_task_id}
    connection.execute(
        upsert(connection, LtiLineItemRow, list(key), {**key, "url": url[:2000]}, update=["url"])
    )


def keep_line_item(store: Store, context_id: int, course_task_id: int, url: str) -> None:
    """The same, in a transaction of its own."""
    with store.write() as connection:
        set_line_item(connection, context_id, course_task_id, url)


def forget_line_item(store: Store, context_id: int, course_task_id: int, url: str) -> None:
    """The platform has that column no more: the next grade finds or makes another."""
    with store.write() as connection:
        connection.execute(
            delete(LtiLineItemRow).where(
                LtiLineItemRow.context_id == context_id,
                LtiLineItemRow.course_task_id == course_task_id,
                LtiLineItemRow.url == url,
            )
        )


def _of(context_id: int, person_id: int, course_task_id: int) -> tuple[ColumnElement[bool], ...]:
    return (
        LtiScoreRow.context_id == context_id,
        LtiScoreRow.person_id == person_id,
        LtiScoreRow.course_task_id == course_task_id,
    )


def _says(row: Row[*tuple[Any, ...]]) -> str:
    if row.verdict is None:
        return NOTHING
    return f"{row.points:.2f} of {row.max_points:.2f}, {row.verdict}"


def _standings(
    connection: Connection, course_task_id: int, person_ids: Collection[int] | None
) -> Sequence[Row[*tuple[Any, ...]]]:
    """Where the learners of connected courses stand in a task, beside what the platforms were told."""
    if person_ids is None:
        return connection.execute(_EVERYBODY, {"task": course_task_id}).all()
    return connection.execute(_SOME, {"task": course_task_id, "people": list(person_ids)}).all()


# Made once: every grade asks for it.
_TOLD = (
    LtiScoreRow.context_id == LtiMemberRow.context_id,
    LtiScoreRow.person_id == LtiMemberRow.person_id,
)
_EVERYBODY = (
    select(
        LtiMemberRow.context_id,
        LtiMemberRow.person_id,
        LtiMemberRow.subject,
        LtiContextRow.platform_id,
        LtiContextRow.course_id,
        LtiContextRow.line_items_url,
        LtiContextRow.scopes,
        LtiLineItemRow.url.label("line_item_url"),
        CourseTaskRow.title,
        CourseTaskRow.due_at,
        StandingRow.verdict,
        StandingRow.points,
        StandingRow.max_points,
        LtiScoreRow.says,
        LtiScoreRow.revision,
        LtiScoreRow.sent_revision,
        LtiScoreRow.stamped_at,
    )
    .select_from(CourseTaskRow)
    .join(LtiContextRow, LtiContextRow.course_id == CourseTaskRow.course_id)
    .join(LtiPlatformRow, LtiPlatformRow.id == LtiContextRow.platform_id)
    .join(LtiMemberRow, LtiMemberRow.context_id == LtiContextRow.id)
    .join(
        EnrolmentRow,
        and_(
            EnrolmentRow.course_id == CourseTaskRow.course_id,
            EnrolmentRow.person_id == LtiMemberRow.person_id,
            EnrolmentRow.role == Role.LEARNER,
        ),
    )
    .outerjoin(
        LtiLineItemRow,
        and_(
            LtiLineItemRow.context_id == LtiContextRow.id,
            LtiLineItemRow.course_task_id == CourseTaskRow.id,
        ),
    )
    .outerjoin(
        StandingRow,
        and_(
            StandingRow.course_task_id == CourseTaskRow.id,
            StandingRow.person_id == LtiMemberRow.person_id,
        ),
    )
    .outerjoin(LtiScoreRow, and_(*_TOLD, LtiScoreRow.course_task_id == CourseTaskRow.id))
    .where(
        CourseTaskRow.id == bindparam("task"),
        LtiPlatformRow.disabled_at.is_(None),
        LtiMemberRow.left_at.is_(None),
        # Graded anonymously, it would be told under a name there; it is once names are shown again.
        key_column(CourseTaskRow.id).is_(None),
    )
    .order_by(LtiMemberRow.context_id, LtiMemberRow.person_id)
)
_SOME = _EVERYBODY.where(LtiMemberRow.person_id.in_(bindparam("people", expanding=True)))
