"""The one way out of the rank: an event becomes one line of JSON, and one `os.write` carries it to the pipe.

It never buffers: whatever was written survives SIGKILL (and costs little as long as the supervisor looks at the pipe
now and then instead of sleeping on it). It never writes from another process than the rank itself (DataLoader workers
and other forked children inherit the descriptor), and never into a descriptor that the script has closed and opened
again for something else. When the pipe is gone it falls silent.

Where the script starts its ranks itself, nobody knows beforehand which process becomes one. There every process gathers
its lines in memory of its own, until it joins (see `joining`) and they go out as if it had always been a rank.
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
from collections.abc import Callable
from typing import Any

from grader.probe.trace.events import BACKWARD, LOADER, LR_SCHEDULER, REACH, SEEDED, STEP
from grader.probe.trace.seals import Sealer

clock = time.monotonic
"""The clock, by a private reference: a script that replaces it in `time` changes its own view only."""

_CHECKED_EVERY = 32
_HIGH_DESCRIPTOR = 4000
_PROBE = os.path.dirname(os.path.dirname(__file__)) + os.sep
_MOST_GATHERED_BYTES = 2 << 20
_TRAINS = tuple(f'{{"e":"{kind}"'.encode() for kind in (STEP, BACKWARD))
"""Who trains is a rank, in a group or not."""
_INHERITED = tuple(f'{{"e":"{kind}"'.encode() for kind in (LOADER, SEEDED, LR_SCHEDULER))
"""What holds in a forked child as well; the rest was its parent's doing."""


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
        self._join: Callable[[], None] | None = None
        self.gathers_in_children = True
        """False while processes are started that never are ranks."""
        self._watches_forks = False
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
        gathered = self._fd if self.gathering else -1
        self.origin = origin
        self._sealer = sealer
        self._join = None
        self._take(fd)
        if gathered >= 0:
            os.close(gathered)

    def gather(self, origin: float, join: Callable[[], None]) -> None:
        """Keep lines until this process, or one that it forks, is known to be a rank.

        Args:
            origin: as in `open`.
            join: called before the first line that says that this process trains; it opens this writer, or stops it.
        """
        self.origin = origin
        self._join = join
        self._take(os.memfd_create("gathered"))

    @property
    def gathering(self) -> bool:
        """Whether this process is no rank yet, and may become one."""
        return self._join is not None and self._fd >= 0

    def begin(self, origin: float) -> None:
        """Forget what was gathered: the script begins, `origin` as in `open`."""
        self.origin = origin
        if self.gathering:
            os.ftruncate(self._fd, 0)
            os.lseek(self._fd, 0, os.SEEK_SET)

    def gathered(self) -> list[bytes]:
        """The lines kept so far."""
        size = min(os.fstat(self._fd).st_size, _MOST_GATHERED_BYTES)
        return [line for line in os.pread(self._fd, size, 0).split(b"\n") if line]

    def stop(self) -> None:
        """Fall silent for good."""
        self._fd, self._join = -1, None

    def _take(self, fd: int) -> None:
        soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        high = min(soft - 32, _HIGH_DESCRIPTOR) if soft > 0 else _HIGH_DESCRIPTOR
        moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, max(high, 3))
        os.close(fd)
        stat = os.fstat(moved)
        self._identity = (stat.st_dev, stat.st_ino)
        self._pid = self._getpid()
        self._fd = moved
        if not self._watches_forks:
            self._watches_forks = True
            os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        if self._join is None or self._fd < 0 or not self.gathers_in_children:
            self.stop()
            return
        # Another thread of the parent may have been writing.
        self._lock, self._busy = threading.RLock(), False
        inherited = [line + b"\n" for line in self.gathered() if line.startswith(_INHERITED)]
        try:
            self._take(os.memfd_create("gathered"))
            os.write(self._fd, b"".join(inherited))
        except OSError:
            self.stop()

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
        if self._join is not None and not self._may_gather(line):
            return
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

    def _may_gather(self, line: bytes) -> bool:
        """Have a process that trains join first; whether a line of one that has not may still be kept."""
        if self._join is not None and line.startswith(_TRAINS):
            self._join()
        return self._join is None or os.fstat(self._fd).st_size < _MOST_GATHERED_BYTES

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
