"""What is known of the ways out: which are set up, and what is wrong with them.

The processes that deliver know it (passwords are theirs alone) and note it here; all others read it. Delivers nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.tables.delivery import DeliveryChannelRow
from grader.store.upsert import upsert


@dataclass(frozen=True, slots=True)
class ChannelFacts:
    """A way out; `problem` None: it is well."""

    set_up: bool
    problem: str | None
    noted_at: datetime


def note_channel(store: Store, name: str, *, set_up: bool, problem: str | None) -> None:
    """Say how a channel is."""
    values = {"name": name, "set_up": set_up, "problem": problem, "noted_at": database_now()}
    with store.write() as connection:
        connection.execute(
            upsert(connection, DeliveryChannelRow, ["name"], values, update=["set_up", "problem", "noted_at"])
        )


def channel_facts(store: Store, name: str) -> ChannelFacts | None:
    """How a channel is; None: nothing that delivers has ever run."""
    row = select(DeliveryChannelRow.set_up, DeliveryChannelRow.problem, DeliveryChannelRow.noted_at)
    with store.read() as connection:
        found = connection.execute(row.where(DeliveryChannelRow.name == name)).one_or_none()
    return None if found is None else ChannelFacts(*found)


def is_set_up(connection: Connection, name: str) -> bool:
    """Whether anything is to be queued for a channel, within a transaction of the caller's."""
    row = select(DeliveryChannelRow.set_up).where(DeliveryChannelRow.name == name)
    return bool(connection.execute(row).scalar_one_or_none())


def mail_problem(store: Store) -> str:
    """Why nobody is mailed just now, as a sentence; "": it is well."""
    facts = channel_facts(store, "mail")
    if facts is None or not facts.set_up:
        return "This site sends no mail: whoever runs it has not set it up."
    if facts.problem is not None:
        return "Mail waits just now: the mail server does not take it. It is sent once it does."
    return ""
