"""What sets the store right again after crashes: ended leases, lost messages. Needs nothing but the database.

Several may run at once; each skips what another has in hand. Ends no container: workers do, told by the answer `stale`.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, select, update

from grader.store.attempts.attempt_endings import BACKOFF_S, RUNNING, AttemptEnding, end_without_grade
from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.tables import AttemptRow, OutboxRow
from grader.store.tables.attempt import AttemptState

STALE_S = 10.0
KEPT_S = 24 * 3600.0
MAX_HINTS = 64
_BATCH = 100


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What was set right, in attempts and messages."""

    requeued: int = 0
    failed: int = 0
    cancelled: int = 0
    republished: int = 0


def reconcile(
    store: Store,
    *,
    stale_s: float = STALE_S,
    backoff_s: float = BACKOFF_S,
    max_hints: int = MAX_HINTS,
) -> Reconciled:
    """Take back attempts whose lease has ended, and send hints again for those that nobody came for.

    Args:
        store: the database.
        stale_s: a hint that was sent longer ago, for an attempt that still waits, seems to be lost.
        backoff_s: how long a lost attempt waits until it may be claimed again.
        max_hints: hints sent again at most; a hint wakes a worker, which then claims until nothing is left.
    """
    with store.write() as connection:
        rows = connection.execute(
            RUNNING.where(AttemptRow.lease_until < database_now())
            .order_by(AttemptRow.lease_until)
            .limit(_BATCH)
            .with_for_update(skip_locked=True)
        ).all()
        ends = [
            end_without_grade(
                connection, row, "its worker gave no sign of life", retry=True, backoff_s=backoff_s
            )
            for row in rows
        ]
    with store.write() as connection:
        republished = _send_again(connection, stale_s, max_hints)
        connection.execute(delete(OutboxRow).where(OutboxRow.sent_at < database_now(-KEPT_S)))
    return Reconciled(
        ends.count(AttemptEnding.REQUEUED),
        ends.count(AttemptEnding.FAILED),
        ends.count(AttemptEnding.CANCELLED),
        republished,
    )


def _send_again(connection: Connection, stale_s: float, max_hints: int) -> int:
    # An attempt's newest message is the one that counts.
    newest = (
        select(func.max(OutboxRow.id))
        .join(AttemptRow, AttemptRow.id == OutboxRow.attempt_id)
        .where(
            AttemptRow.state == AttemptState.QUEUED,
            AttemptRow.available_at <= database_now(),
            OutboxRow.topic == "attempt",
        )
        .group_by(OutboxRow.attempt_id)
    )
    lost = (
        select(OutboxRow.id)
        .where(OutboxRow.id.in_(newest), OutboxRow.sent_at < database_now(-stale_s))
        .order_by(OutboxRow.sent_at)
        .limit(max_hints)
        .with_for_update(skip_locked=True)
    )
    ids = list(connection.execute(lost).scalars())
    if ids:
        connection.execute(
            update(OutboxRow).where(OutboxRow.id.in_(ids)).values(sent_at=None, taken_until=None)
        )
    return len(ids)
