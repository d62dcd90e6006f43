"""Webhooks: other programs that a course tells of verdicts and grades.

A receiver's secret is made of the service's own and a salt, and kept nowhere. What they are told is `webhook_events`.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import Connection, delete, insert, select, update

from grader.errors import UsageError
from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.events import audit
from grader.store.tables import DeliveryRow, WebhookRow
from grader.store.tables.delivery import DeliveryState
from grader.store.tables.webhook import WebhookEvent

CHANNEL = "webhook"
MOST_WEBHOOKS = 10
CHOSEN = (WebhookEvent.ATTEMPT_JUDGED, WebhookEvent.GRADE_CHANGED)
"""What a receiver can be set up for."""
_MOST_URL = 1000
DISABLE_AFTER_S = 86400.0
"""How long a receiver may fail, over `_LEAST_FAILURES` tries or more, before it is told nothing any more."""
_LEAST_FAILURES = 10
_SENT_AGAIN_S = 7 * 86400.0


@dataclass(frozen=True, slots=True)
class Webhook:
    """One receiver; see `grader.store.tables.webhook`."""

    id: int
    course_id: int
    url: str
    events: tuple[str, ...]
    salt: str
    created_at: datetime
    num_failures: int
    failed_since: datetime | None
    disabled_at: datetime | None
    problem: str | None


def receiver_url(text: str) -> str:
    """The address of a receiver as it is kept.

    Raises:
        UsageError: it is no address of a web server, or carries a password.
    """
    url = text.strip()
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("https", "http") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good, parts = False, urlsplit("")
    if not good or len(url) > _MOST_URL or not url.isascii() or not url.isprintable() or " " in url:
        raise UsageError("an address looks like https://host/path")
    if parts.username is not None or parts.fragment:
        raise UsageError("an address without a password and without a #fragment, please")
    return url


def add_webhook(
    store: Store, course_id: int, url: str, events: Collection[WebhookEvent], *, actor_id: int | None
) -> Webhook:
    """Tell a program of these events from now on.

    Raises:
        UsageError: the address is none, no event is chosen, or the course has enough of them.
    """
    url = receiver_url(url)
    chosen = [event.value for event in CHOSEN if event in events]
    if not chosen:
        raise UsageError("choose at least one event")
    with store.write() as connection:
        if len(read_webhooks(connection, course_id)) >= MOST_WEBHOOKS:
            raise UsageError(f"a course has at most {MOST_WEBHOOKS} webhooks")
        made = connection.execute(
            insert(WebhookRow)
            .values(
                course_id=course_id,
                url=url,
                events=chosen,
                salt=secrets.token_hex(16),
                created_at=database_now(),
                num_failures=0,
            )
            .returning(WebhookRow.id)
        ).scalar_one()
        # Without the path: it often is what opens the receiver.
        host = urlsplit(url).hostname
        audit(connection, f"course:{course_id}", "webhook_added", actor_id=actor_id, webhook=made, host=host)
        return _one(connection, made)


def remove_webhook(store: Store, course_id: int, webhook_id: int, *, actor_id: int | None) -> bool:
    """Tell a program nothing any more, and forget what was on its way; False: the course has no such one."""
    with store.write() as connection:
        mine = delete(WebhookRow).where(WebhookRow.id == webhook_id, WebhookRow.course_id == course_id)
        if not connection.execute(mine).rowcount:
            return False
        connection.execute(
            delete(DeliveryRow).where(
                DeliveryRow.channel == CHANNEL,
                DeliveryRow.receiver == receiver_of(webhook_id),
                DeliveryRow.state == DeliveryState.WAITING,
            )
        )
        audit(connection, f"course:{course_id}", "webhook_removed", actor_id=actor_id, webhook=webhook_id)
        return True


def change_secret(store: Store, course_id: int, webhook_id: int, *, actor_id: int | None) -> Webhook | None:
    """Give a receiver another secret, which holds at once; None: the course has no such one."""
    return _change(
        store, (course_id, webhook_id), "webhook_secret_changed", actor_id, salt=secrets.token_hex(16)
    )


def enable(store: Store, course_id: int, webhook_id: int, *, actor_id: int | None) -> Webhook | None:
    """Tell a program again that was told nothing any more, and what it missed; None: the course has no such one."""
    fresh: dict[str, Any] = {"disabled_at": None, "problem": None, "num_failures": 0, "failed_since": None}
    found = _change(store, (course_id, webhook_id), "webhook_enabled", actor_id, **fresh)
    if found is not None:
        with store.write() as connection:
            connection.execute(
                update(DeliveryRow)
                .where(
                    DeliveryRow.channel == CHANNEL,
                    DeliveryRow.receiver == receiver_of(webhook_id),
                    DeliveryRow.state == DeliveryState.GIVEN_UP,
                    DeliveryRow.created_at > database_now(-_SENT_AGAIN_S),
                )
                .values(state=DeliveryState.WAITING, due_at=database_now(), started_at=database_now())
            )
    return found


def webhooks_of(store: Store, course_id: int) -> tuple[Webhook, ...]:
    """A course's receivers, the oldest first."""
    with store.read() as connection:
        return read_webhooks(connection, course_id)


def read_webhooks(connection: Connection, course_id: int) -> tuple[Webhook, ...]:
    """A course's receivers, within a transaction of the caller's."""
    rows = connection.execute(_WEBHOOK.where(WebhookRow.course_id == course_id).order_by(WebhookRow.id))
    return tuple(_read(row) for row in rows)


def webhook(store: Store, webhook_id: int) -> Webhook | None:
    """One receiver, or None."""
    with store.read() as connection:
        row = connection.execute(_WEBHOOK.where(WebhookRow.id == webhook_id)).one_or_none()
        return None if row is None else _read(row)


def note_answer(store: Store, webhook_id: int, problem: str) -> bool:
    """Note how a try went, "": well. True: none has gone well for a day, so it is disabled now."""
    with store.write() as connection:
        if not problem:
            well: dict[str, Any] = {"num_failures": 0, "failed_since": None, "problem": None}
            failing = WebhookRow.num_failures > 0
            connection.execute(update(WebhookRow).where(WebhookRow.id == webhook_id, failing).values(**well))
            return False
        row = connection.execute(
            update(WebhookRow)
            .where(WebhookRow.id == webhook_id, WebhookRow.disabled_at.is_(None))
            .values(
                num_failures=WebhookRow.num_failures + 1,
                problem=problem,
            )
            .returning(WebhookRow.course_id, WebhookRow.num_failures, WebhookRow.failed_since)
        ).one_or_none()
        if row is None:
            return False
        now = connection.execute(select(database_now())).scalar_one()
        since = row.failed_since or now
        over = row.num_failures >= _LEAST_FAILURES and (now - since).total_seconds() >= DISABLE_AFTER_S
        connection.execute(
            update(WebhookRow)
            .where(WebhookRow.id == webhook_id)
            .values(failed_since=since, disabled_at=now if over else None)
        )
        if over:
            course = f"course:{row.course_id}"
            audit(connection, course, "webhook_disabled", actor_id=None, webhook=webhook_id, reason=problem)
        return over


def receiver_of(webhook_id: int) -> str:
    """What a receiver is called among deliveries."""
    return f"webhook:{webhook_id}"


def _change(
    store: Store, which: tuple[int, int], kind: str, actor_id: int | None, **values: Any
) -> Webhook | None:
    course_id, webhook_id = which
    with store.write() as connection:
        mine = update(WebhookRow).where(WebhookRow.id == webhook_id, WebhookRow.course_id == course_id)
        if not connection.execute(mine.values(**values)).rowcount:
            return None
        audit(connection, f"course:{course_id}", kind, actor_id=actor_id, webhook=webhook_id)
        return _one(connection, webhook_id)


def _one(connection: Connection, webhook_id: int) -> Webhook:
    return _read(connection.execute(_WEBHOOK.where(WebhookRow.id == webhook_id)).one())


def _read(row: Sequence[Any]) -> Webhook:
    return Webhook(row[0], row[1], row[2], tuple(row[3]), *row[4:])


_WEBHOOK = select(
    WebhookRow.id,
    WebhookRow.course_id,
    WebhookRow.url,
    WebhookRow.events,
    WebhookRow.salt,
    WebhookRow.created_at,
    WebhookRow.num_failures,
    WebhookRow.failed_since,
    WebhookRow.disabled_at,
    WebhookRow.problem,
)
