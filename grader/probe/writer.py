"""The one way out of the rank: an event becomes one line of JSON, and one `os.write` carries it to the pipe.

It never buffers: whatever was written survives SIGKILL (and costs little as long as the supervisor looks at the pipe
now and then instead of sleeping on it). It never writes from another process than the rank itself (DataLoader workers
and other forked children inherit the descriptor), and never into a descriptor that the script has closed and opened
again for something else. When the pipe is gone it falls silent.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import sys
import threading
import time
from collections import deque
from typing import Any

from grader.probe.events import REACH
from grader.probe.seals import Sealer

clock = time.monotonic
"""The clock, by a private reference: a script that replaces it in `time` changes its own view only."""

_CHECKED_EVERY = 32
_HIGH_DESCRIPTOR = 4000
_PROBE = os.path.dirname(__file__) + os.sep


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
        self._num_sent = 0
        # Held only around the write itself, and never taken in a forked child, so a fork can't inherit it locked to
        # any harm. Re-entrant: a signal handler or a finalizer may write while this thread is writing; its lines wait.
        self._lock = threading.RLock()
        self._sealer: Sealer | None = None
        self._busy = False
        self._torn = False
        self._later: deque[bytes] = deque()
        self.encode = json.JSONEncoder(separators=(",", ":"), default=_plain).encode
        # Private references as well.
        self._write = os.write
        self._fstat = os.fstat
        self._getpid = os.getpid
        self._frame = sys._getframe
        self._callers: set[str] = set()

    def open(self, fd: int, origin: float, sealer: Sealer | None = None) -> None:
        """Start writing to `fd`, which is the writer's own from now on.

        Args:
            fd: the rank's pipe; moved to a high number, where nothing that the script opens will come to lie.
            origin: the ranks' start on the monotonic clock, seconds.
            sealer: seals every line; None: lines go out without a seal.

        Raises:
            OSError: `fd` is not open.
        """
        self.origin = origin
        self._sealer = sealer
        soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        high = min(soft - 32, _HIGH_DESCRIPTOR) if soft > 0 else _HIGH_DESCRIPTOR
        moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, max(high, 3))
        os.close(fd)
        stat = os.fstat(moved)
        self._identity = (stat.st_dev, stat.st_ino)
        self._pid = self._getpid()
        self._fd = moved
        os.register_at_fork(after_in_child=self._fall_silent)

    def _fall_silent(self) -> None:
        self._fd = -1

    def here(self) -> bool:
        """Whether this process may write: it is the rank itself, and the pipe is still there."""
        return self._fd >= 0

    def now(self) -> float:
        """Seconds since the ranks' start."""
        return clock() - self.origin

    def write(self, kind: str, /, **fields: Any) -> None:
        """Write one event; silently nothing where `here` is false or the pipe has gone."""
        if self._fd >= 0:
            line = self.encode({"e": kind, "t": round(clock() - self.origin, 6), **fields})
            self.send(line.encode("utf-8", "replace"), 2)

    def send(self, line: bytes, above: int = 1) -> None:
        """Write an event that is one line of JSON, given without its newline; `above`: frames up to who writes it."""
        # Every step pays for this twice: no call but those that have something to do.
        caller = self._frame(above).f_code.co_filename
        if caller not in self._callers:
            self._meet(caller)
        with self._lock:
            if self._busy:
                self._later.append(line)
                return
            self._busy = True
            try:
                while self._fd >= 0 and self._getpid() == self._pid:
                    self._num_sent = number = self._num_sent + 1
                    if not number % _CHECKED_EVERY and not self._is_ours():
                        self._fd = -1
                        break
                    if self._sealer is not None:
                        line = self._sealer.sealed(line)
                    # A handler of the script's may raise in the middle of a line: what follows begins on its own one.
                    line = b"\n%b\n" % line if self._torn else line + b"\n"
                    self._torn = True
                    sent = self._write(self._fd, line)
                    while sent < len(line):
                        sent += self._write(self._fd, line[sent:])
                    self._torn = False
                    if not self._later:
                        break
                    line = self._later.popleft()
            except OSError:
                self._fd = -1
            finally:
                self._busy = False

    def _meet(self, caller: str) -> None:
        """Told once about each file: only the probe's own have a use for this writer."""
        self._callers.add(caller)
        if not caller.startswith(_PROBE):
            self.write(REACH, what="writer", target=os.path.basename(caller)[:200], site=None)

    def _is_ours(self) -> bool:
        stat = self._fstat(self._fd)
        return (stat.st_dev, stat.st_ino) == self._identity


writer = Writer()
"""The process's writer."""
