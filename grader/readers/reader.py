"""One reader as its parent sees it: started, asked, and explained where it ended instead of answering."""

from __future__ import annotations

import contextlib
import os
import pickle
import resource
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from grader.readers import serving
from grader.readers.channel import Channel
from grader.readers.limits import BusyError, OverLimitError, ReadingLimits

_MARGIN_S = 5.0
_MUCH = 4
"""What took more than so many parts of its processor time is itself to blame when the time to wait is over."""

_T = TypeVar("_T")


class Reader:
    """A reader of its own, imported anew: for processes with threads, which must not fork.

    `first`: what it calls before it takes work, `module:function`, or "".
    """

    def __init__(self, first: str, environment: Mapping[str, str]) -> None:
        # Not for whoever forks.
        import socket
        import subprocess

        self.environment = environment
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "grader.readers", str(theirs.fileno()), *filter(None, [first])],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        self._connection = Channel(ours.detach())
        self._ready = self._owes = False

    def ask(self, work: Callable[..., _T], given: tuple[Any, ...], limits: ReadingLimits) -> _T:
        """What the work gives.

        Raises:
            OverLimitError: it took too much; this reader is dead then.
            BusyError: the machine had too little processor time for it; dead, too.
            ReaderGoneError: it ended before it took the work.
            Exception: what the work raised.
        """
        self._owes = True
        try:
            self._connection.send_bytes(pickle.dumps((work, given, limits), pickle.HIGHEST_PROTOCOL))
            answer = _heard(self._connection, time.monotonic() + limits.wall_s + _MARGIN_S, limits)
        except OSError:
            self.close()
            raise ReaderGoneError from None
        except _EndedError as ended:
            _, status, used = self._end()
            if ended.at is None:
                raise ReaderGoneError from None
            raise OverLimitError(_why(status, used, ended.begun_s, limits), ended.at) from None
        self._owes = False
        given_back: _T = answer.value_within(limits)
        return given_back

    @property
    def ready(self) -> bool:
        """Whether it has imported what it needs; one that never will counts, too, and is gone when it is asked."""
        if not self._ready and self._connection.poll():
            self._ready = True
            with contextlib.suppress(EOFError, OSError):
                self._connection.recv_bytes()
        return self._ready

    @property
    def alive(self) -> bool:
        """Whether it can be asked: one that has grown large ends after its work, one that owes an answer is lost."""
        return not self._owes and self._process.poll() is None

    def close(self) -> None:
        """End it, if it has not ended."""
        if self._process.returncode is None:
            self._end()

    def _end(self) -> tuple[int, int, resource.struct_rusage]:
        self._connection.close()
        ended = _reap(self._process.pid)
        self._process.returncode = os.waitstatus_to_exitcode(ended[1])
        return ended


class ReaderGoneError(Exception):
    """The reader had ended before it was asked; another one may do it."""


class _EndedError(Exception):
    """`at`: what was being read, "" where unsaid; None: nothing yet. `begun_s`: processor time used before."""

    def __init__(self, at: str | None, begun_s: float) -> None:
        super().__init__(at)
        self.at = at
        self.begun_s = begun_s


@dataclass(frozen=True, slots=True)
class _Answer:
    kind: int
    value: Any
    at: str

    def value_within(self, limits: ReadingLimits) -> Any:
        if self.kind == serving.ANSWER:
            return self.value
        if self.kind == serving.FAILURE:
            raise self.value
        reached = {
            serving.MEMORY: f"{limits.memory_bytes >> 20:,} MiB of memory",
            serving.DEPTH: "the depth that Python follows",
            serving.TOO_LONG: f"{limits.answer_bytes >> 20:,} MiB of what there is to say about it",
        }
        raise OverLimitError(reached[self.kind], self.at)


def in_fork(work: Callable[[], _T], limits: ReadingLimits) -> _T:
    """What the work gives, done by a copy of this process, which must have one thread.

    Raises:
        OverLimitError: it took too much.
        BusyError: the machine had too little processor time for it.
        Exception: what the work raised.
    """
    receiving, sending = os.pipe()
    begun = time.monotonic()
    pid = os.fork()
    if pid == 0:
        _be_fork(work, limits, (receiving, sending))
    os.close(sending)
    connection = Channel(receiving)
    try:
        answer = _heard(connection, begun + limits.wall_s + _MARGIN_S, limits)
    except _EndedError as ended:
        _, status, used = _reap(pid)
        raise OverLimitError(_why(status, used, ended.begun_s, limits), ended.at or "") from None
    except BaseException:
        _reap(pid)
        raise
    finally:
        connection.close()
    _reap(pid)
    given_back: _T = answer.value_within(limits)
    return given_back


def _be_fork(work: Callable[[], Any], limits: ReadingLimits, ends: tuple[int, int]) -> NoReturn:
    code = 1
    try:
        os.close(ends[0])
        serving.become_reader()
        serving.do(Channel(ends[1]), work, limits)
        code = 0
    finally:
        # Nothing that this process had open or planned is the copy's business.
        os._exit(code)


def _reap(pid: int) -> tuple[int, int, resource.struct_rusage]:
    # What has ended by itself stays as it ended.
    os.kill(pid, signal.SIGKILL)
    return os.wait4(pid, 0)


def _heard(connection: Channel, deadline: float, limits: ReadingLimits) -> _Answer:
    at: str | None = None
    begun_s = 0.0
    while True:
        try:
            if not connection.poll(max(0.0, deadline - time.monotonic())):
                raise _EndedError(at, begun_s)
            kind, value = pickle.loads(connection.recv_bytes(limits.answer_bytes + (1 << 16)))
        except (EOFError, OSError):
            raise _EndedError(at, begun_s) from None
        if kind != serving.AT:
            return _Answer(kind, value, at or "")
        begun_s = value[1] if at is None else begun_s
        at = value[0]


def _why(status: int, used: resource.struct_rusage, begun_s: float, limits: ReadingLimits) -> str:
    code, took_s = os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime - begun_s
    if code == -signal.SIGPROF:
        return f"{limits.cpu_s:g} s of processor time"
    if code == -signal.SIGALRM and took_s > limits.cpu_s / _MUCH:
        return f"{limits.wall_s:g} s"
    if code == -signal.SIGALRM:
        raise BusyError(f"{limits.wall_s:g} s were not enough on a machine with so much else to do")
    return "the memory that there is" if code == -signal.SIGKILL else "what Python's own parser bears"
