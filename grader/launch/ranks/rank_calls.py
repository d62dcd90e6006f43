"""Where processes of a run call the supervisor: one Unix socket, JSON lines, any number of callers.

Whatever comes is a learner's to write: what is no JSON object is passed over, and nobody is ever waited for.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import struct
from collections.abc import Iterator
from typing import Any

_LONGEST_MESSAGE_BYTES = 1 << 16
_CREDENTIALS = struct.Struct("3i")


class RankCalls:
    """Takes calls from its making on; `address` is its name among the machine's abstract sockets."""

    def __init__(self, backlog: int) -> None:
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # An abstract name: no file that would have to be found, shared or removed.
        self.address = f"grader-{secrets.token_hex(16)}"
        self._listener.bind(f"\0{self.address}")
        self._listener.listen(backlog)
        self._listener.setblocking(False)
        self._partial: dict[socket.socket, bytes] = {}

    @property
    def descriptors(self) -> list[int]:
        """What to wake up for."""
        return [self._listener.fileno(), *(call.fileno() for call in self._partial)]

    @property
    def idle(self) -> bool:
        """Whether everybody who called has hung up."""
        return not self._partial

    def take(self) -> Iterator[tuple[socket.socket, dict[str, Any] | None]]:
        """What came since the last time: who calls, and what; None: they hung up, and the socket is about to close."""
        with contextlib.suppress(BlockingIOError):
            while True:
                call, _address = self._listener.accept()
                call.setblocking(False)
                self._partial[call] = b""
        for call in list(self._partial):
            try:
                chunk = call.recv(1 << 16)
            except BlockingIOError:
                continue
            except OSError:
                chunk = b""
            # Whoever writes so much without an end is nobody whom we know.
            *lines, rest = (self._partial[call] + chunk)[-_LONGEST_MESSAGE_BYTES:].split(b"\n")
            self._partial[call] = rest
            for line in lines:
                with contextlib.suppress(ValueError, RecursionError):
                    message = json.loads(line)
                    if isinstance(message, dict):
                        yield call, message
            if not chunk:
                yield call, None
                del self._partial[call]
                call.close()

    def close(self) -> None:
        """Take no more calls."""
        self._listener.close()


def caller_pid(call: socket.socket) -> int:
    """Process id of whoever opened a call, as the kernel says it."""
    raw = call.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid: int = _CREDENTIALS.unpack(raw)[0]
    return pid
