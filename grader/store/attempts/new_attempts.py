"""Queueing attempts: row, first event and message together, whoever asks for them. Says nothing of limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, insert

from grader.store.clock import database_now
from grader.store.events import ADD_EVENT
from grader.store.tables import AttemptRow, OutboxRow
from grader.store.tables.attempt import AttemptState


def enqueue(
    connection: Connection, attempts: Sequence[dict[str, Any]], actors: Sequence[int | None]
) -> list[int]:
    """Queue attempts, each with its first event, whose actor is given, and its message, in the caller's transaction."""
    made = list(connection.execute(_QUEUE, attempts).scalars())
    connection.execute(
        ADD_EVENT,
        [
            {
                "attempt_id": attempt_id,
                "seq": 1,
                "kind": "queued",
                "actor_id": actor_id,
                "data": {"lane": values["lane"]},
            }
            for attempt_id, values, actor_id in zip(made, attempts, actors, strict=True)
        ],
    )
    connection.execute(_SEND, [{"attempt_id": attempt_id} for attempt_id in made])
    return made


# Statements of the busiest operation are made once: making them takes longer than running them.
_QUEUE = (
    insert(AttemptRow)
    .values(state=AttemptState.QUEUED, queued_at=database_now(), available_at=database_now(), event_seq=1)
    .returning(AttemptRow.id, sort_by_parameter_order=True)
)
_SEND = insert(OutboxRow).values(topic="attempt", created_at=database_now())
