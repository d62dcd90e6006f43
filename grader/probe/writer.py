"""The one way out of the rank: an event becomes one line of JSON and one `os.write`.

It never buffers (every event survives SIGKILL), never writes from another process than the rank itself (DataLoader
workers and other forked children inherit the descriptor), and never writes into a descriptor that the script has
closed and opened again for something else. When the pipe is gone it falls silent.
"""

from __future__ import annotations

import json
import os
import threading
import time
from typing import Any


def _plain(value: Any) -> Any:
    item = getattr(value, "item", None)  # numpy scalars and tensors of one element
    return item() if callable(item) else str(value)


class Writer:
    """Writes events to one descriptor; a silent one (`fd` −1) until `open` is called."""

    def __init__(self) -> None:
        self.origin = 0.0
        self._fd = -1
        self._pid = -1
        self._identity = (0, 0)
        # Held only around the write itself, and never taken in a forked child, so a fork can't inherit it locked to
        # any harm. Re-entrant: a signal handler or a finalizer may write while this thread is writing.
        self._lock = threading.RLock()
        self._encode = json.JSONEncoder(separators=(",", ":"), default=_plain).encode
        # Private references: a script that replaces these in `os` or `time` changes its own view only.
        self._write = os.write
        self._fstat = os.fstat
        self._getpid = os.getpid
        self._clock = time.monotonic

    def open(self, fd: int, origin: float) -> None:
        """Start writing to `fd`; `origin` is the ranks' start on the monotonic clock, seconds."""
        self.origin = origin
        stat = os.fstat(fd)
        self._identity = (stat.st_dev, stat.st_ino)
        os.set_inheritable(fd, False)
        self._pid = self._getpid()
        self._fd = fd

    def here(self) -> bool:
        """Whether this process may write: it is the rank itself, and the pipe is still there."""
        return self._fd >= 0 and self._getpid() == self._pid

    def now(self) -> float:
        """Seconds since the ranks' start."""
        return self._clock() - self.origin

    def write(self, kind: str, /, **fields: Any) -> None:
        """Write one event; silently nothing where `here` is false or the pipe has gone."""
        if not self.here():
            return
        line = self._encode({"e": kind, "t": round(self._clock() - self.origin, 6), **fields})
        self.send(line.encode("utf-8", "replace") + b"\n")

    def send(self, line: bytes) -> None:
        """Write bytes that are one finished line."""
        try:
            with self._lock:
                stat = self._fstat(self._fd)
                if (stat.st_dev, stat.st_ino) != self._identity:
                    self._fd = -1  # the script closed our descriptor and its number now means something else
                    return
                sent = self._write(self._fd, line)
                while sent < len(line):
                    sent += self._write(self._fd, line[sent:])
        except OSError:
            self._fd = -1


writer = Writer()
"""The process's writer."""
