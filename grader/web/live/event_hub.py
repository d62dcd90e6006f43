"""One query of the store per second for all who watch in this process; each gets every event once, in order.

A watcher may come late or come back: it names the last event that it saw and gets what followed. Writes nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from grader.errors import InfraError
from grader.store.database import Store
from grader.store.events import NewEvents, StoredEvent, new_events
from grader.store.queue.queue import QueuePlace, places
from grader.store.tables.attempt import FINAL, AttemptState

PERIOD_S = 1.0
KEEP_ALIVE_S = 15.0
LONGEST_S = 900.0
"""Afterwards the browser asks again, and with that its access is checked again."""
MOST, MOST_OF_ONE = 1000, 12
_log = logging.getLogger("grader.web.live")


@dataclass(frozen=True, slots=True)
class AttemptEnded:
    """The attempt has its end; nothing more comes."""

    state: AttemptState


@dataclass(frozen=True, slots=True)
class KeepAlive:
    """Nothing new, but we are there."""


LiveEvent = StoredEvent | QueuePlace | AttemptEnded | KeepAlive


@dataclass(slots=True)
class _Channel:
    """One attempt that somebody watches."""

    watchers: int = 0
    events: list[StoredEvent] = field(default_factory=list)
    place: QueuePlace | None = None
    ended: AttemptState | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def last_seen(self) -> int:
        return self.events[-1].seq if self.events else 0

    def take(self, new: NewEvents, place: QueuePlace | None) -> None:
        self.events.extend(new.events)
        if new.events or place != self.place:
            self.place = place
            self._ring()
        if new.state in FINAL and self.last_seen >= new.last and self.ended is None:
            self.ended = new.state
            self._ring()

    def _ring(self) -> None:
        # Whoever waits holds the old bell; the next one is rung the next time.
        bell, self.changed = self.changed, asyncio.Event()
        bell.set()


class TooManyWatchersError(Exception):
    """As many watch as this process serves; the page asks again, or is loaded again by hand."""


class EventHub:
    """All who watch in this process."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._channels: dict[int, _Channel] = {}
        self._people: dict[int, int] = {}
        self._task: asyncio.Task[None] | None = None
        self._queried_at = float("-inf")
        self.num_queries = 0
        """Queries of the store so far."""

    @property
    def num_watchers(self) -> int:
        """How many watch just now."""
        return sum(self._people.values())

    def admit(self, person_id: int) -> None:
        """Refuse one watcher too many.

        Raises:
            FullError: there are too many, of this person or altogether.
        """
        if self.num_watchers >= MOST or self._people.get(person_id, 0) >= MOST_OF_ONE:
            raise TooManyWatchersError

    async def follow(self, attempt_id: int, after: int, person_id: int) -> AsyncGenerator[LiveEvent]:
        """Everything that happens to an attempt after event number `after`, until its end."""
        channel = self._join(attempt_id, person_id)
        until, place = time.monotonic() + LONGEST_S, None
        try:
            while time.monotonic() < until:
                bell = channel.changed
                for event in [one for one in channel.events if one.seq > after]:
                    yield event
                    after = event.seq
                if channel.place is not None and channel.place != place:
                    place = channel.place
                    yield place
                if channel.ended is not None and after >= channel.last_seen:
                    yield AttemptEnded(channel.ended)
                    return
                if channel.changed is not bell:
                    continue
                try:
                    await asyncio.wait_for(bell.wait(), KEEP_ALIVE_S)
                except TimeoutError:
                    yield KeepAlive()
        finally:
            self._leave(attempt_id, person_id)

    def _join(self, attempt_id: int, person_id: int) -> _Channel:
        loop = asyncio.get_running_loop()
        if self._task is None or self._task.done() or self._task.get_loop() is not loop:
            self._task = loop.create_task(self._poll())
        channel = self._channels.setdefault(attempt_id, _Channel())
        channel.watchers += 1
        self._people[person_id] = self._people.get(person_id, 0) + 1
        return channel

    def _leave(self, attempt_id: int, person_id: int) -> None:
        channel = self._channels[attempt_id]
        channel.watchers -= 1
        if not channel.watchers:
            del self._channels[attempt_id]
        self._people[person_id] -= 1
        if not self._people[person_id]:
            del self._people[person_id]

    async def _poll(self) -> None:
        """Query once a second for as long as anybody watches."""
        while self._channels:
            # One second between queries, also where everybody leaves and somebody comes again.
            await asyncio.sleep(max(0.0, self._queried_at + PERIOD_S - time.monotonic()))
            self._queried_at = time.monotonic()
            watched = dict(self._channels)
            last_seen = {attempt_id: channel.last_seen for attempt_id, channel in watched.items()}
            try:
                found, queue = await asyncio.to_thread(self._query, last_seen)
            except InfraError as error:
                # The database is away: everybody keeps waiting, and gets all of it later.
                _log.warning("live views wait: %s", error)
                continue
            for attempt_id, new in found.items():
                watched[attempt_id].take(new, queue.get(attempt_id))

    def _query(self, last_seen: dict[int, int]) -> tuple[dict[int, NewEvents], dict[int, QueuePlace]]:
        self.num_queries += 1
        found = new_events(self._store, last_seen)
        waits = any(new.state is AttemptState.QUEUED for new in found.values())
        return found, places(self._store) if waits else {}
