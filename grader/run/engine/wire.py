"""A container's standard streams as seen from outside: what is sent in, lines and bytes that come out, last words.

Speaks the engine's framing of attached streams (type, length, payload). Trusts nothing that comes: a line that is no
JSON object is an empty event, and lengths are capped by whoever asks.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import struct
import time
from typing import Any

from docker.models.containers import Container

from grader.errors import InfraError

_HEADER = struct.Struct(">BxxxL")
_STDERR = 2
_LAST_WORDS_BYTES = 3000
_CHUNK_BYTES = 1 << 18
_LONGEST_LINE_BYTES = 8 << 20


class WireLostError(InfraError):
    """The container ended, or the engine let go of its streams."""


class Wire:
    """Attached to a container that has not been started yet, so that no word of it is missed."""

    def __init__(self, container: Container) -> None:
        params = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        # Kept: the response object would close the socket when it is collected.
        self._attached = container.attach_socket(params=params)
        self._socket: socket.socket = getattr(self._attached, "_sock")  # noqa: B009  the reader hides it
        self._socket.settimeout(None)
        self._name = container.name
        self._framed = bytearray()
        self._received = bytearray()
        self._errors = bytearray()
        self._over = False

    def send(self, message: dict[str, Any], limit_s: float = 30.0) -> None:
        """One line of JSON to its standard input.

        Raises:
            WireLostError: it is gone, or does not read.
        """
        data = json.dumps(message).encode() + b"\n"
        self._socket.settimeout(limit_s)
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise WireLostError(f"{self._name} does not listen: {error}.{self.last_words()}") from error
        finally:
            self._socket.settimeout(None)

    def event(self, deadline: float) -> dict[str, Any] | None:
        """The next line it says; None when `time.monotonic()` passes the deadline first.

        Raises:
            WireLostError: it said its last.
        """
        while (end := self._received.find(b"\n")) < 0:
            if len(self._received) > _LONGEST_LINE_BYTES:
                raise WireLostError(f"{self._name} sent a line without an end.")
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
            WireLostError: it ended, or sent less in time.
        """
        while len(self._received) < num_bytes:
            if not self._receive(deadline):
                raise WireLostError(f"{self._name} stopped in the middle of a file.")
        data = bytes(self._received[:num_bytes])
        del self._received[:num_bytes]
        return data

    def last_words(self) -> str:
        """The end of its standard error as part of a message; "" where it said nothing."""
        with contextlib.suppress(InfraError):
            while not self._over and self._receive(time.monotonic() + 0.05):
                pass
        text = bytes(self._errors[-_LAST_WORDS_BYTES:]).decode(errors="replace").strip()
        return f" Its last words:\n{text}" if text else ""

    def close(self) -> None:
        """Let go; the container lives on."""
        with contextlib.suppress(OSError):
            self._socket.close()
        with contextlib.suppress(OSError, AttributeError):
            self._attached.close()

    def _receive(self, deadline: float) -> bool:
        """Take what there is, waiting for it until the deadline; False when nothing came."""
        if self._over:
            raise WireLostError(f"{self._name} has ended.{self._tail()}")
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            return False
        readable, _, _ = select.select([self._socket], [], [], left_s)
        if not readable:
            return False
        try:
            chunk = os.read(self._socket.fileno(), _CHUNK_BYTES)
        except OSError:
            chunk = b""
        if not chunk:
            self._over = True
            if not self._received:
                raise WireLostError(f"{self._name} has ended.{self._tail()}")
        self._framed += chunk
        self._unframe()
        return True

    def _unframe(self) -> None:
        while len(self._framed) >= _HEADER.size:
            kind, length = _HEADER.unpack_from(self._framed)
            if len(self._framed) < _HEADER.size + length:
                return
            payload = self._framed[_HEADER.size : _HEADER.size + length]
            del self._framed[: _HEADER.size + length]
            if kind == _STDERR:
                self._errors = (self._errors + payload)[-_LAST_WORDS_BYTES:]
            else:
                self._received += payload

    def _tail(self) -> str:
        text = bytes(self._errors).decode(errors="replace").strip()
        return f" Its last words:\n{text}" if text else ""
