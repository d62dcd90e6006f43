"""A connection to a process in a container: lines of JSON both ways, then bytes where a line announced some.

How bytes travel is the business of who inherits (`engine.attached_connection`, `apptainer.pipe_connection`). Trusts
nothing that comes: a line that is no JSON object is an empty event, and lengths are capped by whoever asks.
"""

from __future__ import annotations

import contextlib
import json
import time
from abc import ABC, abstractmethod
from typing import Any

from grader.errors import InfraError

_LAST_WORDS_BYTES = 3000
_LONGEST_LINE_BYTES = 8 << 20


class ConnectionLostError(InfraError):
    """The container ended, or what led to it broke."""


class ContainerConnection(ABC):
    """Our end of the standard streams of a container's first process; who inherits writes and reads chunks.

    Attributes:
        name: of the container, for messages.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._received = bytearray()
        self._errors = bytearray()
        self._over = False

    @abstractmethod
    def _write(self, data: bytes, limit_s: float) -> None:
        """All of it to its standard input; raises OSError when it does not read within the limit."""

    @abstractmethod
    def _read(self, left_s: float) -> bool:
        """What there is within that time, given to `_take_output` and `_take_errors`; False when nothing came.

        Raises:
            EOFError: nothing will come any more.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go; the container lives on."""

    def send(self, message: dict[str, Any], limit_s: float = 30.0) -> None:
        """One line of JSON to its standard input.

        Raises:
            ConnectionLostError: it is gone, or does not read.
        """
        try:
            self._write(json.dumps(message).encode() + b"\n", limit_s)
        except OSError as error:
            raise ConnectionLostError(f"{self.name} does not listen: {error}.{self.last_words()}") from error

    def event(self, deadline: float) -> dict[str, Any] | None:
        """The next line it says; None when `time.monotonic()` passes the deadline first.

        Raises:
            ConnectionLostError: it said its last.
        """
        while (end := self._received.find(b"\n")) < 0:
            if len(self._received) > _LONGEST_LINE_BYTES:
                raise ConnectionLostError(f"{self.name} sent a line without an end.")
            if not self._receive(deadline):
                return None
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        with contextlib.suppress(ValueError, RecursionError):
            event = json.loads(line)
            if isinstance(event, dict):
                return event
        return {}

    def take(self, num_bytes: int, deadline: float) -> bytes:
        """So many bytes that follow the last line.

        Raises:
            ConnectionLostError: it ended, or sent less in time.
        """
        while len(self._received) < num_bytes:
            if not self._receive(deadline):
                raise ConnectionLostError(f"{self.name} stopped in the middle of a file.")
        data = bytes(self._received[:num_bytes])
        del self._received[:num_bytes]
        return data

    def last_words(self) -> str:
        """The end of its standard error as part of a message; "" where it said nothing."""
        with contextlib.suppress(InfraError):
            while not self._over and self._receive(time.monotonic() + 0.05):
                pass
        return self._tail()

    def _take_output(self, chunk: bytes | bytearray) -> None:
        self._received += chunk

    def _take_errors(self, chunk: bytes | bytearray) -> None:
        self._errors = (self._errors + chunk)[-_LAST_WORDS_BYTES:]

    def _receive(self, deadline: float) -> bool:
        """Take what there is, waiting for it until the deadline; False when nothing came."""
        if self._over:
            raise ConnectionLostError(f"{self.name} has ended.{self._tail()}")
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            return False
        try:
            return self._read(left_s)
        except EOFError:
            self._over = True
        if not self._received:
            raise ConnectionLostError(f"{self.name} has ended.{self._tail()}")
        return True

    def _tail(self) -> str:
        text = bytes(self._errors).decode(errors="replace").strip()
        return f" Its last words:\n{text}" if text else ""
