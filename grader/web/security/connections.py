"""Connections that wait for their client, and for how long: whoever says nothing keeps nobody else out.

A connection costs little while nothing comes, but there are only so many. Each has a time for the head of a request and
for the next one; and where there are too many, those that have waited longest make room, first of whichever address has
most of them. Where all come through one proxy, that is simply the oldest ones. Requests that we work on are never cut.
"""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Iterable
from typing import ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_S, KEEP_ALIVE_S = 10.0, 30.0
"""For the whole head of a request; from an answer to the first byte of the next request."""
TAKEN_S = 60.0
"""For a client that reads nothing of an answer any more, until it does."""
LINGER_S, LINGER_BYTES = 10.0, 16 << 20
"""For what still comes of a request that is refused: a client that is cut off while it sends never reads the answer."""
MOST_CONNECTIONS = 4096
_GRACE_S = 2.0
"""Nobody makes room sooner: in a rush that is honest, everybody's request is still on its way."""
_LOOK_S = 0.1
"""From one search for those who make room to the next: one for each of a thousand newcomers keeps everybody waiting."""
_MOST_FILES = 16_384


class TimedConnection(HttpToolsProtocol):
    """uvicorn's, with an end to waiting: its own time runs between requests only, and a new connection has none.

    Attributes:
        waiting_since: when the client's turn began, `time.monotonic`; None: it is ours.
    """

    waiting_since: float | None = None
    _next_look: ClassVar[float] = 0.0
    _num_unanswered = 0
    _num_unread = 0
    _end: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The client is to say what it wants; others make room for it."""
        super().connection_made(transport)
        self._wait(HEAD_S)
        if len(self.connections) > most_connections() and time.monotonic() >= TimedConnection._next_look:
            TimedConnection._next_look = time.monotonic() + _LOOK_S
            _make_room(one for one in self.connections if isinstance(one, TimedConnection))

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self._go_on()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """The first bytes of a request."""
        super().on_message_begin()
        self._wait(HEAD_S)

    def on_headers_complete(self) -> None:
        """The body's time is `body_limits`' business from here on; until it is whole, it is the client's turn."""
        self._go_on()
        self.waiting_since = time.monotonic()
        self._num_unanswered += 1
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of a body, which nobody reads where the answer is given already."""
        self._num_unread = 0 if self._num_unanswered else self._num_unread + len(body)
        if self._num_unread > LINGER_BYTES:
            self.cut()
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is whole."""
        self.waiting_since = None
        super().on_message_complete()
        self._await_more()

    def on_response_complete(self) -> None:
        """Whoever was answered may ask for more."""
        self._num_unanswered -= 1
        super().on_response_complete()
        self._await_more()

    def pause_writing(self) -> None:
        """The client takes nothing in just now."""
        super().pause_writing()
        self._wait(TAKEN_S)

    def resume_writing(self) -> None:
        """It does again."""
        super().resume_writing()
        self._go_on()
        self._await_more()

    def cut(self) -> None:
        """End it at once, whatever it was still to be sent."""
        self._go_on()
        self.transport.abort()

    def _await_more(self) -> None:
        # Where requests came one upon the other, the next one is worked on already.
        if not self._num_unanswered:
            self._wait(LINGER_S if self.cycle.more_body else KEEP_ALIVE_S)

    def _wait(self, seconds: float) -> None:
        self._go_on()
        self.waiting_since = time.monotonic()
        self._end = self.loop.call_later(seconds, self.cut)

    def _go_on(self) -> None:
        self.waiting_since = None
        if self._end is not None:
            self._end.cancel()
            self._end = None


def allow_many_files() -> None:
    """Raise this process's own limit of open files towards what the system allows: each connection is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def most_connections() -> int:
    """How many this process keeps before some make room: well below the number of files that it may open."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_CONNECTIONS if soft == resource.RLIM_INFINITY else min(MOST_CONNECTIONS, soft // 2)


def _make_room(connections: Iterable[TimedConnection]) -> None:
    """Cut a tenth of what may be kept, so that not every new one has to look for another."""
    latest = time.monotonic() - _GRACE_S
    of_address: dict[str, list[tuple[float, TimedConnection]]] = {}
    for one in connections:
        if one.waiting_since is not None and one.waiting_since < latest:
            address = one.client[0] if one.client else ""
            of_address.setdefault(address, []).append((one.waiting_since, one))
    # Numbered from each address's newest on: the highest numbers are of those who have most.
    numbered = [
        (number, one)
        for waiting in of_address.values()
        for number, (_since, one) in enumerate(sorted(waiting, key=lambda pair: -pair[0]))
    ]
    numbered.sort(key=lambda pair: -pair[0])
    for _number, one in numbered[: most_connections() // 10]:
        one.cut()
