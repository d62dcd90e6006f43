"""How attempts end: judged, failed, cancelled. Each has one end, whatever arrives in which order.

Whoever ends an attempt names its lease; a lease that is no longer in force is refused as an answer, not an exception.
A cancel that was taken always wins over what the run still brings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Row, case, insert, select, update

from grader.model.grade import Verdict
from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.delivery.notices import notify_judged
from grader.store.events import add_event
from grader.store.grading.grades import NewGrade, record_grade
from grader.store.grading.standings import recompute_standings
from grader.store.tables import ArtifactRow, AttemptRow, OutboxRow
from grader.store.tables.attempt import AttemptState

MAX_TRIES = 3
BACKOFF_S = 5.0


class AttemptEnding(StrEnum):
    """What became of an attempt that somebody wanted to end."""

    JUDGED = "judged"
    REQUEUED = "requeued"
    """It will be tried again."""
    FAILED = "failed"
    CANCELLED = "cancelled"
    STALE = "stale"
    """Refused: the lease is not in force any more, or there is no such attempt."""


class CancelResult(StrEnum):
    """What a cancel did."""

    CANCELLED = "cancelled"
    REQUESTED = "requested"
    """It runs; its worker ends it within a heartbeat, and `cancelled` is its only end from now on."""
    TOO_LATE = "too_late"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of an attempt that lies in the file store."""

    name: str
    digest: str
    size: int


def finish(
    store: Store,
    attempt_id: int,
    lease_token: int,
    grade: NewGrade,
    files: Sequence[StoredFile] = (),
) -> AttemptEnding:
    """Record the final grade: `judged`, or `cancelled` where that was asked for meanwhile, or `stale`.

    Saying it again with the same lease (an answer may get lost) says `judged` again and changes nothing.

    Raises:
        ValueError: the grade is a `judge_error`; that is `fail`'s.
    """
    if grade.verdict is Verdict.JUDGE_ERROR:
        raise ValueError("a judge_error is no grade: say fail(), so that it is tried again")
    with store.write() as connection:
        row = connection.execute(
            update(AttemptRow)
            .where(
                AttemptRow.id == attempt_id,
                AttemptRow.lease_token == lease_token,
                AttemptRow.state == AttemptState.RUNNING,
            )
            .values(
                state=case(
                    (AttemptRow.cancel_requested_at.is_(None), AttemptState.JUDGED.value),
                    else_=AttemptState.CANCELLED.value,
                ),
                **_OVER,
            )
            .returning(
                AttemptRow.state, AttemptRow.person_id, AttemptRow.course_task_id, AttemptRow.event_seq
            )
        ).one_or_none()
        if row is None:
            return _ended_before(connection, attempt_id, lease_token)
        if row.state is AttemptState.CANCELLED:
            add_event(connection, attempt_id, row.event_seq, "cancelled")
            return AttemptEnding.CANCELLED
        record_grade(connection, attempt_id, row.person_id, row.course_task_id, grade)
        if files:
            connection.execute(
                insert(ArtifactRow),
                [
                    {"attempt_id": attempt_id, "name": one.name, "digest": one.digest, "size": one.size}
                    for one in files
                ],
            )
        add_event(connection, attempt_id, row.event_seq, "judged", verdict=grade.verdict, points=grade.points)
        recompute_standings(connection, row.course_task_id, [row.person_id])
        notify_judged(connection, [attempt_id])
        return AttemptEnding.JUDGED


def fail(
    store: Store,
    attempt_id: int,
    lease_token: int,
    reason: str,
    *,
    retry: bool = True,
    backoff_s: float = BACKOFF_S,
) -> AttemptEnding:
    """The machine or the grader failed: queue the attempt again, and after `MAX_TRIES` end it as `judge_error`.

    It never counts against the learner's limits. `retry` False ends it at once.
    """
    with store.write() as connection:
        row = lock_running(connection, attempt_id, lease_token)
        if row is None:
            return AttemptEnding.STALE
        return end_without_grade(connection, row, reason, retry=retry, backoff_s=backoff_s)


def give_up(store: Store, attempt_id: int, lease_token: int) -> AttemptEnding:
    """Give an attempt back: cancelled where that was asked for, otherwise queued again as if it had not been tried.

    A worker that is told to stop says this of what it cannot finish any more.
    """
    with store.write() as connection:
        row = lock_running(connection, attempt_id, lease_token)
        if row is None:
            return AttemptEnding.STALE
        return end_without_grade(connection, row, "given back", retry=True, backoff_s=0.0, forget_try=True)


def cancel(store: Store, attempt_id: int, *, actor_id: int | None) -> CancelResult:
    """Cancel an attempt: at once where it waits, by a flag for its worker where it runs."""
    with store.write() as connection:
        row = connection.execute(
            select(AttemptRow.state, AttemptRow.cancel_requested_at)
            .where(AttemptRow.id == attempt_id)
            .with_for_update()
        ).one_or_none()
        if row is None:
            return CancelResult.UNKNOWN
        if row.state is AttemptState.QUEUED:
            values: dict[str, Any] = {
                "state": AttemptState.CANCELLED,
                "cancel_requested_at": database_now(),
                **_OVER,
            }
        elif row.state is not AttemptState.RUNNING:
            return CancelResult.CANCELLED if row.state is AttemptState.CANCELLED else CancelResult.TOO_LATE
        elif row.cancel_requested_at is not None:
            return CancelResult.REQUESTED
        else:
            values = {"cancel_requested_at": database_now(), "event_seq": AttemptRow.event_seq + 1}
        seq = connection.execute(
            update(AttemptRow)
            .where(AttemptRow.id == attempt_id)
            .values(**values)
            .returning(AttemptRow.event_seq)
        ).scalar_one()
        waited = row.state is AttemptState.QUEUED
        add_event(
            connection, attempt_id, seq, "cancelled" if waited else "cancel_requested", actor_id=actor_id
        )
        return CancelResult.CANCELLED if waited else CancelResult.REQUESTED


def lock_running(connection: Connection, attempt_id: int, lease_token: int) -> Row[*tuple[Any, ...]] | None:
    """The running attempt of that lease, its row locked, or None: for `end_without_grade`."""
    return connection.execute(
        RUNNING.where(AttemptRow.id == attempt_id, AttemptRow.lease_token == lease_token).with_for_update()
    ).one_or_none()


def end_without_grade(
    connection: Connection,
    row: Row[*tuple[Any, ...]],
    reason: str,
    *,
    retry: bool,
    backoff_s: float,
    forget_try: bool = False,
) -> AttemptEnding:
    """End the try of a locked running attempt without a grade: cancelled, queued again, or failed for good."""
    if row.cancel_requested_at is not None:
        ending, values = AttemptEnding.CANCELLED, {"state": AttemptState.CANCELLED, **_OVER}
    elif retry and (forget_try or row.tries < MAX_TRIES):
        ending = AttemptEnding.REQUEUED
        values = {
            "state": AttemptState.QUEUED,
            "available_at": database_now(backoff_s),
            "claimed_at": None,
            "worker": None,
            "tries": row.tries - forget_try,
            "event_seq": AttemptRow.event_seq + 1,
            **_FREE,
        }
    else:
        ending, values = AttemptEnding.FAILED, {"state": AttemptState.FAILED, **_OVER}
    seq = connection.execute(
        update(AttemptRow)
        .where(AttemptRow.id == row.id)
        .values(failure=reason, **values)
        .returning(AttemptRow.event_seq)
    ).scalar_one()
    add_event(connection, row.id, seq, ending.value, reason=reason, tries=row.tries)
    if ending is not AttemptEnding.CANCELLED:
        # Queued again: somebody is to take it. Failed for good: somebody is to be told.
        topic = "attempt" if ending is AttemptEnding.REQUEUED else "judge_error"
        connection.execute(
            insert(OutboxRow).values(
                topic=topic,
                attempt_id=row.id,
                created_at=database_now(),
                # Not sent before it can be claimed.
                taken_until=database_now(backoff_s) if topic == "attempt" else None,
            )
        )
    return ending


def _ended_before(connection: Connection, attempt_id: int, lease_token: int) -> AttemptEnding:
    state = connection.execute(
        select(AttemptRow.state).where(
            AttemptRow.id == attempt_id, AttemptRow.lease_token == lease_token, AttemptRow.lease_token > 0
        )
    ).scalar_one_or_none()
    # Only whoever held this lease can have ended it as judged.
    return AttemptEnding.JUDGED if state is AttemptState.JUDGED else AttemptEnding.STALE


_FREE: dict[str, Any] = {"lease_until": None, "phase": None}
_OVER: dict[str, Any] = {**_FREE, "finished_at": database_now(), "event_seq": AttemptRow.event_seq + 1}
RUNNING = select(
    AttemptRow.id, AttemptRow.tries, AttemptRow.cancel_requested_at, AttemptRow.lease_token
).where(AttemptRow.state == AttemptState.RUNNING)
