"""Handing in: submission, attempt, event and message in one transaction, within the limits that hold for the learner.

What stands in the way is an answer, not an exception. Reads no file and runs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, and_, bindparam, insert, select

from grader.model.submission import SourceFile, Submission
from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.events import NOTE, note
from grader.store.grades import copy_answer, known_answer
from grader.store.limits import Caps, Dates, Limit, Refusal, days_late, refused_by_caps, refused_by_dates
from grader.store.standings import restate
from grader.store.tables import (
    Attempt,
    Course,
    CourseTask,
    Enrolment,
    Extension,
    OutboxRow,
    Source,
    SubmissionRow,
)
from grader.store.tables.attempt import AttemptState, Lane
from grader.store.tables.base import storable
from grader.store.tables.person import Role
from grader.store.upsert import upserting


@dataclass(frozen=True, slots=True)
class Accepted:
    """A submission that was taken.

    Attributes:
        state: `queued`, or `judged` where the same files were judged before.
        late_days: days begun after the due date.
        repeated: this request came before; nothing new was made.
    """

    submission_id: int
    attempt_id: int
    state: AttemptState
    late_days: int = 0
    repeated: bool = False


def submit(
    store: Store,
    person_id: int,
    course_task_id: int,
    submission: Submission,
    *,
    idempotency_key: str | None = None,
    forced: bool = False,
) -> Accepted | Refusal:
    """Hand a submission in and queue an attempt, or say which limit stands in the way.

    Instructors of the course try things out at any time, as often as they like.

    Args:
        store: where to.
        person_id: who hands in.
        course_task_id: for which task of which course.
        submission: the files.
        idempotency_key: the client's name of this request; the same key again gives the same answer.
        forced: judge even where the same files were judged before.
    """
    key = None if idempotency_key is None else storable(idempotency_key)[:80]
    with store.write() as connection:
        terms = _terms(connection, person_id, course_task_id)
        if terms is None:
            return Refusal(Limit.NOT_ENROLLED)
        if key is not None:
            earlier = _earlier(connection, person_id, key)
            if earlier is not None:
                if (earlier.digest, earlier.course_task_id) != (submission.digest, course_task_id):
                    return Refusal(Limit.KEY_REUSED)
                late = days_late(earlier.submitted_at, terms.extended or terms.due_at)
                return Accepted(earlier.submission_id, earlier.id, earlier.state, late, repeated=True)
        refusal = None if terms.role is Role.INSTRUCTOR else _refusal(connection, person_id, terms)
        if refusal is not None:
            return refusal
        return _take(connection, person_id, terms, submission, key, forced)


def source_of(store: Store, attempt_id: int) -> Submission | None:
    """The files that an attempt judges, or None where there is no such attempt."""
    with store.read() as connection:
        row = connection.execute(
            select(SubmissionRow.name, Source.files)
            .join(Attempt, Attempt.submission_id == SubmissionRow.id)
            .join(Source, Source.digest == SubmissionRow.digest)
            .where(Attempt.id == attempt_id)
        ).one_or_none()
    if row is None:
        return None
    return Submission(row.name, tuple(SourceFile(path, text) for path, text in row.files))


def enqueue(connection: Connection, attempts: Sequence[dict[str, Any]], *, actor_id: int | None) -> list[int]:
    """Queue attempts, each with its first event and its message, within a transaction of the caller's."""
    made = list(connection.execute(_QUEUE, attempts).scalars())
    connection.execute(
        NOTE,
        [
            {
                "attempt_id": attempt_id,
                "seq": 1,
                "kind": "queued",
                "actor_id": actor_id,
                "data": {"lane": values["lane"]},
            }
            for attempt_id, values in zip(made, attempts, strict=True)
        ],
    )
    connection.execute(_SEND, [{"attempt_id": attempt_id} for attempt_id in made])
    return made


def _terms(connection: Connection, person_id: int, course_task_id: int) -> Row[*tuple[Any, ...]] | None:
    return connection.execute(_TERMS, {"person": person_id, "course_task": course_task_id}).one_or_none()


def _earlier(connection: Connection, person_id: int, key: str) -> Row[*tuple[Any, ...]] | None:
    return connection.execute(_EARLIER, {"person": person_id, "key": key}).one_or_none()


def _refusal(connection: Connection, person_id: int, terms: Row[*tuple[Any, ...]]) -> Refusal | None:
    if terms.closed_at is not None:
        return Refusal(Limit.COURSE_CLOSED)
    dates = Dates(terms.opens_at, terms.extended or terms.due_at, terms.late_policy, terms.late_days)
    refusal = refused_by_dates(terms.now, dates)
    if refusal is not None:
        return refusal
    attempts = connection.execute(_OWN, {"person": person_id, "course_task": terms.id}).all()
    caps = Caps(terms.max_per_day, terms.max_total, terms.max_concurrent)
    counted = [row.queued_at for row in attempts if _counts(row)]
    unfinished = sum(row.state in (AttemptState.QUEUED, AttemptState.RUNNING) for row in attempts)
    return refused_by_caps(terms.now, caps, counted, unfinished)


def _counts(row: Row[*tuple[Any, ...]]) -> bool:
    """Whether an attempt is held against the learner's limits: our faults and answers from before are not."""
    if row.state is AttemptState.FAILED or row.cached_from is not None:
        return False
    # Cancelled while it waited it cost nothing; cancelled while it ran it may have told something.
    return not (row.state is AttemptState.CANCELLED and row.claimed_at is None)


def _take(
    connection: Connection,
    person_id: int,
    terms: Row[*tuple[Any, ...]],
    submission: Submission,
    key: str | None,
    forced: bool,
) -> Accepted:
    digest = submission.digest
    files = [[file.path, file.text] for file in submission.files]
    size = sum(len(file.text) for file in submission.files)
    # An update rather than nothing: it locks the row, so that no erasure takes these files from under us.
    connection.execute(
        upserting(connection.dialect.name, Source, ("digest",), ("size",)),
        {"digest": digest, "files": files, "size": size},
    )
    submission_id = connection.execute(
        _SUBMIT,
        {
            "person_id": person_id,
            "course_task_id": terms.id,
            "digest": digest,
            "name": submission.name,
            "submitted_at": terms.now,
            "idempotency_key": key,
        },
    ).scalar_one()
    values = {
        "submission_id": submission_id,
        "person_id": person_id,
        "course_task_id": terms.id,
        "digest": digest,
        "task": terms.task,
        "task_version": terms.version,
        "profile": terms.profile,
        "need": terms.need,
        "lane": Lane.INTERACTIVE,
        "forced": forced,
    }
    late = days_late(terms.now, terms.extended or terms.due_at)
    origin = None if forced else known_answer(connection, digest, terms.version, terms.profile)
    if origin is None:
        (attempt_id,) = enqueue(connection, [values], actor_id=person_id)
        return Accepted(submission_id, attempt_id, AttemptState.QUEUED, late)
    attempt_id = connection.execute(
        insert(Attempt)
        .values(
            state=AttemptState.JUDGED,
            queued_at=database_now(),
            available_at=database_now(),
            finished_at=database_now(),
            cached_from=origin,
            event_seq=1,
            **values,
        )
        .returning(Attempt.id)
    ).scalar_one()
    grade = copy_answer(connection, origin, attempt_id, person_id, terms.id, submission.name)
    note(connection, attempt_id, 1, "judged", actor_id=person_id, verdict=grade.verdict, cached_from=origin)
    restate(connection, terms.id, [person_id])
    return Accepted(submission_id, attempt_id, AttemptState.JUDGED, late)


# Statements of the busiest operation are made once: making them takes longer than running them.
# The enrolment's row is locked: of two uploads by one learner the second counts the first.
_TERMS = (
    select(
        Enrolment.role,
        Course.closed_at,
        CourseTask.id,
        CourseTask.task,
        CourseTask.version,
        CourseTask.profile,
        CourseTask.need,
        CourseTask.opens_at,
        # The learner's own date where there is one, even an earlier one.
        Extension.due_at.label("extended"),
        CourseTask.due_at,
        CourseTask.late_policy,
        CourseTask.late_days,
        CourseTask.max_per_day,
        CourseTask.max_total,
        CourseTask.max_concurrent,
        database_now().label("now"),
    )
    .join(CourseTask, CourseTask.course_id == Enrolment.course_id)
    .join(Course, Course.id == Enrolment.course_id)
    .outerjoin(
        Extension,
        and_(Extension.enrolment_id == Enrolment.id, Extension.course_task_id == CourseTask.id),
    )
    .where(Enrolment.person_id == bindparam("person"), CourseTask.id == bindparam("course_task"))
    .with_for_update(of=Enrolment)
)
_EARLIER = (
    select(
        SubmissionRow.id.label("submission_id"),
        SubmissionRow.digest,
        SubmissionRow.course_task_id,
        SubmissionRow.submitted_at,
        Attempt.id,
        Attempt.state,
    )
    .join(Attempt, Attempt.submission_id == SubmissionRow.id)
    .where(SubmissionRow.person_id == bindparam("person"), SubmissionRow.idempotency_key == bindparam("key"))
    .order_by(Attempt.id)
    .limit(1)
)
_OWN = (
    select(Attempt.queued_at, Attempt.state, Attempt.claimed_at, Attempt.cached_from)
    .where(
        Attempt.person_id == bindparam("person"),
        Attempt.course_task_id == bindparam("course_task"),
        Attempt.lane == Lane.INTERACTIVE,
    )
    .order_by(Attempt.id.desc())
)
_SUBMIT = insert(SubmissionRow).returning(SubmissionRow.id)
_QUEUE = (
    insert(Attempt)
    .values(state=AttemptState.QUEUED, queued_at=database_now(), available_at=database_now(), event_seq=1)
    .returning(Attempt.id, sort_by_parameter_order=True)
)
_SEND = insert(OutboxRow).values(topic="attempt", created_at=database_now())
