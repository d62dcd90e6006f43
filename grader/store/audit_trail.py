"""What was done about a subject: filtered, page by page, and what a class does by the hundred folded into one line.

Writing it is `events`. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Text, func, or_, select, type_coerce

from grader.store.database import Store
from grader.store.events import StoredEvent
from grader.store.tables import EventRow

_FIRST, _AT_ONCE = 125, 500
"""So many events are read first, and then four times as many; a page is full of a hundred, unless a list was folded."""
_MOST_READ = 5000
_OF_MANY = ("enrolled", "left", "certified", "group_joined", "group_left", "group_made")
"""Of these a list of people makes hundreds, among which all else would be lost."""


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which events; None: any.

    Attributes:
        person_id: who did it, or to whom it was done.
        since, until: from that moment on, and before that one.
    """

    kind: str | None = None
    person_id: int | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class AuditLine:
    """An event, or the newest of `number` of one kind by one person in a row; `first_at`: of the oldest."""

    event: StoredEvent
    number: int
    first_at: datetime


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Lines, newest first; `before`: of the next page, None where there is none."""

    lines: tuple[AuditLine, ...]
    before: int | None


def audit_page(
    store: Store, subject: str, wanted: AuditFilter, *, before: int | None = None, num_lines: int = 100
) -> AuditPage:
    """So many lines of what matches, from before that event on.

    Whoever asks for a kind gets every event of it; among others those of a whole class are folded.
    """
    lines: list[AuditLine] = []
    for event in _events(store, subject, wanted, before, _MOST_READ):
        last = lines[-1] if lines else None
        folds = (
            last is not None
            and wanted.kind is None
            and event.kind in _OF_MANY
            and (event.kind, event.actor_id) == (last.event.kind, last.event.actor_id)
        )
        if folds and last is not None:
            lines[-1] = AuditLine(last.event, last.number + 1, event.at)
        elif len(lines) == num_lines:
            return AuditPage(tuple(lines), before)
        else:
            lines.append(AuditLine(event, 1, event.at))
        before = event.id
    return AuditPage(tuple(lines), None)


def audit_events(store: Store, subject: str, wanted: AuditFilter, *, limit: int) -> Iterator[StoredEvent]:
    """All that match, newest first, each for itself: for files."""
    return _events(store, subject, wanted, None, limit)


def audit_kinds(store: Store, subject: str) -> dict[str, int]:
    """What was ever done about a subject: how many events of each kind there are, by name."""
    with store.read() as connection:
        rows = connection.execute(
            select(EventRow.kind, func.count())
            .where(EventRow.subject == subject)
            .group_by(EventRow.kind)
            .order_by(EventRow.kind)
        )
        return {kind: number for kind, number in rows}  # noqa: C416 - rows are no pairs for mypy


def people_in(events: Iterable[StoredEvent]) -> set[int]:
    """Everybody whom these events name, by number."""
    named = (one for event in events for one in (event.actor_id, event.data.get("person_id")))
    return {one for one in named if isinstance(one, int)}


def _events(
    store: Store, subject: str, wanted: AuditFilter, before: int | None, limit: int
) -> Iterator[StoredEvent]:
    at_once = _FIRST
    while limit > 0:
        num_wanted = min(limit, at_once)
        statement = select(
            EventRow.id, EventRow.seq, EventRow.kind, EventRow.at, EventRow.actor_id, EventRow.data
        ).where(EventRow.subject == subject, *_conditions(wanted))
        if before is not None:
            statement = statement.where(EventRow.id < before)
        with store.read() as connection:
            rows = connection.execute(statement.order_by(EventRow.id.desc()).limit(num_wanted)).all()
        yield from (StoredEvent(*row) for row in rows)
        if len(rows) < num_wanted:
            return
        before, limit, at_once = rows[-1].id, limit - len(rows), _AT_ONCE


def _conditions(wanted: AuditFilter) -> Iterator[ColumnElement[Any]]:
    if wanted.kind is not None:
        yield EventRow.kind == wanted.kind
    if wanted.person_id is not None:
        # JSON as we write it: without blanks, so that a number ends with a comma or the object.
        text, named = type_coerce(EventRow.data, Text), f'"person_id":{wanted.person_id}'
        yield or_(
            EventRow.actor_id == wanted.person_id,
            text.contains(f"{named},", autoescape=True),
            text.contains(f"{named}}}", autoescape=True),
        )
    if wanted.since is not None:
        yield EventRow.at >= wanted.since
    if wanted.until is not None:
        yield EventRow.at < wanted.until
