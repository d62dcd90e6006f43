"""What of an attempt's events its watchers get: named kinds and fields only, nothing of staff's or the queue's.

A verdict is never sent: the page that follows decides whether it may be shown already.
"""

from __future__ import annotations

import json
from datetime import UTC
from typing import Any

from grader.report.safe_text import visible
from grader.store.events import StoredEvent
from grader.store.queue.queue import QueuePlace

PHASES = ("queue", "prepare", "run", "evaluate", "report")
_FIELDS = {
    "queued": (),
    "claimed": ("tries",),
    "requeued": (),
    "phase": ("phase",),
    "epoch": ("epoch", "of", "loss"),
    "log": ("rank", "stream", "text"),
    "cancel_requested": (),
    "cancelled": (),
    "failed": (),
    "judged": (),
}
_MOST_TEXT = 16_384


def public_event(event: StoredEvent) -> tuple[str, dict[str, Any]] | None:
    """Kind and fields as watchers get them, or None: not for them."""
    if event.kind not in _FIELDS:
        return None
    fields = {name: _plain(event.data.get(name)) for name in _FIELDS[event.kind]}
    return event.kind, {"at": event.at.astimezone(UTC).isoformat(timespec="milliseconds"), **fields}


def public_place(place: QueuePlace) -> dict[str, Any]:
    """Where an attempt stands in the queue."""
    starts = place.starts_in_s
    return {"position": place.position, "starts_in_s": None if starts is None else round(starts)}


def stream_message(kind: str, data: dict[str, Any], number: int | None = None) -> bytes:
    """One message of an event stream; JSON holds no line break, so nothing of a log ends it early."""
    head = "" if number is None else f"id: {number}\n"
    return f"{head}event: {kind}\ndata: {json.dumps(data, allow_nan=False)}\n\n".encode()


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value[-_MOST_TEXT:])
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        return value if abs(value) < float("inf") else None
    return None
