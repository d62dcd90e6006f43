"""A clock for a database of ours that moves only when it is told to.

The store reads every time from its database, by one SQL function. In a database that a rehearsal owns, that function is
answered from here: nothing in the store is changed or bypassed, and no time is waited for.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import event

from grader.store import schema
from grader.store.database import Store

_START = datetime(2026, 1, 1, 12, tzinfo=UTC)


class SimulatedClock:
    """Seconds since the rehearsal began, as its database tells them.

    Attributes:
        now_s: moves forward only.
    """

    def __init__(self) -> None:
        self.now_s = 0.0

    def forward(self, to_s: float) -> None:
        """Let time pass until then."""
        self.now_s = max(self.now_s, to_s)

    def at(self, seconds: float) -> datetime:
        """The moment so many seconds after the beginning."""
        return _START + timedelta(seconds=seconds)

    def since(self, moment: datetime) -> float:
        """Seconds from the beginning to a moment."""
        return (moment - _START).total_seconds()

    def open(self, folder: Path) -> Store:
        """An empty database of this version in a folder, which tells this time from its first connection on."""
        store = Store(f"sqlite:///{folder / 'rehearsal.db'}")

        @event.listens_for(store.engine, "connect")
        def use_this_clock(connection: Any, _record: Any) -> None:
            connection.create_function("strftime", 3, self._sql_now)
            # It is thrown away afterwards, so nothing of it needs to reach the disk.
            connection.execute("PRAGMA synchronous=OFF")

        schema.upgrade(store)
        return store

    def _sql_now(self, form: str, moment: str, offset: str) -> str:
        number, _, unit = offset.partition(" ")
        assert (form, moment, unit) == ("%Y-%m-%d %H:%M:%f", "now", "seconds"), (
            "the store's way to ask the time"
        )
        moment_now = self.at(self.now_s + float(number))
        return f"{moment_now:%Y-%m-%d %H:%M:%S}.{moment_now.microsecond // 1000:03d}"
