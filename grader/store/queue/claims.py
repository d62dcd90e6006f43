"""Claiming attempts and keeping them: whose turn it is, the lease with its fencing token, signs of life.

A lease is what a worker has of an attempt: `(attempt_id, lease_token)`. Every claim raises the token, so that whoever
held an older one is refused from then on, however late it comes back. Ends of attempts are `attempt_endings`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any

from sqlalchemy import Connection, Float, and_, bindparam, case, func, select, text, tuple_, update
from sqlalchemy.orm import aliased
from sqlalchemy.sql.dml import ReturningUpdate

from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.events import add_event
from grader.store.grading.grades import submission_name
from grader.store.tables import AttemptRow, GateRow, TurnRow, WorkerRow
from grader.store.tables.attempt import AttemptState, Lane
from grader.store.upsert import upsert

LEASE_S = 30.0
HEARTBEAT_S = 10.0
EVERYTHING = "*"
"""Name of the gate that holds all attempts."""
# Any number that nothing else in this database uses.
_CLAIMING = 0x67726164


class Idle(StrEnum):
    """Why a worker got nothing."""

    EMPTY = "empty"
    """Nothing waits that this worker could take."""
    PAUSED = "paused"
    DRAINING = "draining"
    """This worker is to finish what it has."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """An attempt that is this worker's until `lease_until`, and all it needs to judge it (files: `source_of`)."""

    attempt_id: int
    lease_token: int
    lease_until: datetime
    tries: int
    submission_id: int
    submission: str
    digest: str
    person_id: int
    course_task_id: int
    task: str
    task_version: str
    profile: str
    need: str
    lane: Lane


class HeartbeatAnswer(StrEnum):
    """What the store answers to a sign of life."""

    KEPT = "kept"
    CANCEL = "cancel"
    """The lease is kept; end the run and say `give_up`."""
    STALE = "stale"
    """It is somebody else's by now: end the run and say nothing."""


def needs_of(num_gpus: int, *, cpu: bool = True) -> tuple[str, ...]:
    """What a worker with so many free devices can take: `cpu`, `gpu1`, … up to all of them."""
    return (*(["cpu"] if cpu else []), *(f"gpu{number}" for number in range(1, num_gpus + 1)))


def claim(
    store: Store,
    worker: str,
    needs: Sequence[str],
    *,
    lane: Lane | None = None,
    fitting: Sequence[tuple[str, str]] | None = None,
    lease_s: float = LEASE_S,
) -> Claimed | Idle:
    """Take the next attempt that this worker can judge; where a lane is named, only if the next is of that lane.

    The interactive lane comes before regrades; within a lane whoever was served longest ago comes first, and of each
    person's attempts the oldest.

    Args:
        store: where.
        worker: its name; needs: what it can take.
        lane: None: either.
        fitting: task and profile of what it has the time for, all else is left to others; None: all.
        lease_s: seconds until the attempt is anybody's again, if no heartbeat comes.
    """
    with store.write() as connection:
        if not store.is_sqlite:
            # One at a time, so that each claim sees whom the one before it served. SKIP LOCKED below still matters: a
            # row that a cancel holds just now must not hold up everybody.
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_CLAIMING})"))
        draining = connection.execute(select(WorkerRow.draining).where(WorkerRow.name == worker))
        if draining.scalar_one_or_none():
            return Idle.DRAINING
        gates = set(connection.execute(select(GateRow.name)).scalars())
        lanes = [lane for lane in Lane if lane.value not in gates]
        open_needs = [need for need in needs if need not in gates]
        if EVERYTHING in gates or not lanes or (needs and not open_needs):
            return Idle.PAUSED
        wanted = [lane] if lane is not None else lanes
        values = {
            "lanes": lanes,
            "wanted": wanted,
            "needs": open_needs,
            "claims_for": worker,
            "lease_s": lease_s,
        }
        if fitting is not None:
            values["fitting"] = list(fitting)
        return _claim(connection, values) or Idle.EMPTY


def heartbeat(
    store: Store, attempt_id: int, lease_token: int, *, phase: str | None = None, lease_s: float = LEASE_S
) -> HeartbeatAnswer:
    """Say that the worker lives, and what it does; prolongs the lease by the database's clock."""
    beat = {"attempt": attempt_id, "token": lease_token, "doing": phase, "lease_s": lease_s}
    with store.write() as connection:
        row = connection.execute(_BEAT, beat).one_or_none()
    if row is None:
        return HeartbeatAnswer.STALE
    return HeartbeatAnswer.KEPT if row.cancel_requested_at is None else HeartbeatAnswer.CANCEL


def _claim(connection: Connection, values: dict[str, Any]) -> Claimed | None:
    row = connection.execute(_next("fitting" in values), values).one_or_none()
    if row is None:
        return None
    add_event(connection, row.id, row.event_seq, "claimed", worker=values["claims_for"], tries=row.tries)
    last = (
        select(func.coalesce(func.max(TurnRow.turn), 0) + 1).where(TurnRow.lane == row.lane).scalar_subquery()
    )
    connection.execute(
        upsert(
            connection,
            TurnRow,
            ["person_id", "lane"],
            {"person_id": row.person_id, "lane": row.lane, "turn": last},
            update=["turn"],
        )
    )
    return Claimed(
        attempt_id=row.id,
        lease_token=row.lease_token,
        lease_until=row.lease_until,
        tries=row.tries,
        submission_id=row.submission_id,
        submission=submission_name(connection, row.submission_id),
        digest=row.digest,
        person_id=row.person_id,
        course_task_id=row.course_task_id,
        task=row.task,
        task_version=row.task_version,
        profile=row.profile,
        need=row.need,
        lane=row.lane,
    )


@cache
def _next(only_fitting: bool) -> ReturningUpdate[*tuple[Any, ...]]:
    """The statement that takes the next attempt; made once, since making it takes longer than running it."""
    waiting = aliased(AttemptRow)
    fitting: Any = bindparam("fitting", expanding=True)
    # The oldest of each person and lane: few rows to order, however many somebody has queued.
    heads = (
        select(func.min(waiting.id).label("id"))
        .where(
            waiting.state == AttemptState.QUEUED,
            waiting.lane.in_(bindparam("lanes", expanding=True)),
            waiting.need.in_(bindparam("needs", expanding=True)),
            waiting.available_at <= database_now(),
            *([tuple_(waiting.task, waiting.profile).in_(fitting)] if only_fitting else []),
        )
        .group_by(waiting.lane, waiting.person_id)
        .cte("heads")
        # Worked out once, whatever the server's statistics make it believe.
        .prefix_with("MATERIALIZED", dialect="postgresql")
    )
    candidate = aliased(AttemptRow)
    chosen = (
        select(candidate.id)
        .join(heads, heads.c.id == candidate.id)
        .outerjoin(TurnRow, and_(TurnRow.person_id == candidate.person_id, TurnRow.lane == candidate.lane))
        .where(candidate.state == AttemptState.QUEUED)
        .order_by(
            case((candidate.lane == Lane.INTERACTIVE, 0), else_=1),
            func.coalesce(TurnRow.turn, 0),
            candidate.id,
        )
        .limit(1)
        .with_for_update(of=candidate, skip_locked=True)
        .scalar_subquery()
    )
    return (
        update(AttemptRow)
        .where(
            AttemptRow.id == chosen,
            AttemptRow.state == AttemptState.QUEUED,
            AttemptRow.lane.in_(bindparam("wanted", expanding=True)),
        )
        .values(
            state=AttemptState.RUNNING,
            worker=bindparam("claims_for"),
            claimed_at=database_now(),
            lease_until=database_now(bindparam("lease_s", type_=Float())),
            lease_token=AttemptRow.lease_token + 1,
            tries=AttemptRow.tries + 1,
            phase="prepare",
            event_seq=AttemptRow.event_seq + 1,
        )
        .returning(
            AttemptRow.id,
            AttemptRow.lease_token,
            AttemptRow.lease_until,
            AttemptRow.tries,
            AttemptRow.submission_id,
            AttemptRow.digest,
            AttemptRow.person_id,
            AttemptRow.course_task_id,
            AttemptRow.task,
            AttemptRow.task_version,
            AttemptRow.profile,
            AttemptRow.need,
            AttemptRow.lane,
            AttemptRow.event_seq,
        )
    )


_BEAT = (
    update(AttemptRow)
    .where(
        AttemptRow.id == bindparam("attempt"),
        AttemptRow.lease_token == bindparam("token"),
        AttemptRow.state == AttemptState.RUNNING,
    )
    .values(
        lease_until=database_now(bindparam("lease_s", type_=Float())),
        phase=func.coalesce(bindparam("doing", type_=AttemptRow.phase.type), AttemptRow.phase),
    )
    .returning(AttemptRow.cancel_requested_at)
)
