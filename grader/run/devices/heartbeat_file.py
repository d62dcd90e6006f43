"""A locked file that tells whether a process still lives: the kernel drops the lock when the process ends.

That holds however it ends, SIGKILL included. Children do not keep it: the descriptor is closed on exec, and on a
plain fork by us. It also carries the last sign of life, so that a process that merely hangs can be told from one
that works. Knows nothing of devices.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import weakref
from pathlib import Path
from typing import Self

_open: weakref.WeakSet[HeartbeatFile] = weakref.WeakSet()


class HeartbeatFile:
    """An own heartbeat file, held until it is closed or the process ends."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        _open.add(self)

    @classmethod
    def create(cls, path: Path, now_s: float) -> Self:
        """A new one at a path that nobody else uses.

        Raises:
            OSError: it cannot be written, or somebody does use it.
        """
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise
        line = cls(path, descriptor)
        line.beat(now_s)
        return line

    @classmethod
    def inherit(cls, path: Path) -> Self | None:
        """That of a process which has ended, now ours; None while it lives, or where there is no such file."""
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return cls(path, descriptor)

    @classmethod
    def replace(cls, path: Path, now_s: float) -> Self:
        """Put an own one in the place of another's, which may live: its lock is worth nothing from here on."""
        line = cls.create(path.with_suffix(".new"), now_s)
        line.path.replace(path)
        line.path = path
        return line

    def beat(self, now_s: float) -> None:
        """Give a sign of life: the clock's reading."""
        os.pwrite(self._descriptor, f"{now_s:020.3f} {os.getpid():<20}\n".encode(), 0)

    def in_place(self) -> bool:
        """Whether it is held and the file is still the one at its path; a lock on one that was removed is worthless."""
        if self._descriptor < 0:
            return False
        try:
            return os.path.samestat(os.fstat(self._descriptor), self.path.stat())
        except FileNotFoundError:
            return False

    def close(self) -> None:
        """Let go; the file stays, and says that this process is through."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        # One that nobody refers to any more keeps nothing from anybody.
        self.close()

    def remove(self) -> None:
        """Let go and leave no file."""
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()
        self.close()


def lives(path: Path) -> bool:
    """Whether the process behind a heartbeat file has not ended."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def last_heartbeat(path: Path) -> tuple[float, int] | None:
    """The last sign of life behind a heartbeat file and whose it was (process id), None where there is none."""
    try:
        seconds, pid = path.read_text(encoding="ascii").split()
        return float(seconds), int(pid)
    except (OSError, ValueError):
        return None


def _close_in_child() -> None:
    for line in list(_open):
        line.close()


os.register_at_fork(after_in_child=_close_in_child)
