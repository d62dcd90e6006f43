"""The readers of this process: few, kept warm, lent to one asker at a time, replaced when they end."""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from grader.readers.limits import BusyError, ReadingLimits
from grader.readers.reader import Reader, ReaderGoneError, in_fork

MOST = 4
"""Readers at once: more than most machines have cores to spare, so that slow texts of some do not hold up all."""
_LOOK_S = 0.02
_LEAST_S = 0.5
_MOST_TRIES = MOST + 2

_T = TypeVar("_T")


class _Pool:
    def __init__(self) -> None:
        self._change = threading.Condition()
        self._idle: list[Reader] = []
        self._num = 0
        self._first = ""
        self._began = False
        self._environment = _environment()

    def prepare(self, first: str, number: int) -> None:
        with self._change:
            if first != self._first:
                self.forget()
            self._first = first
            while self._num < number:
                self._idle.append(self._new())

    def began(self) -> bool:
        with self._change:
            self._began = self._began or any(reader.ready for reader in self._idle)
            return self._began or not self._num

    def read(self, work: Callable[..., _T], given: tuple[Any, ...], limits: ReadingLimits) -> _T:
        deadline = time.monotonic() + limits.wall_s
        for _ in range(_MOST_TRIES):
            reader = self._take(deadline)
            try:
                left_s = max(_LEAST_S, deadline - time.monotonic())
                return reader.ask(work, given, replace(limits, wall_s=round(left_s, 1)))
            except ReaderGoneError:
                continue
            finally:
                self._give_back(reader)
        raise BusyError("readers end as soon as they begin")

    def forget(self) -> None:
        """What is idle knows other modules or settings than are wanted now, or nobody wants anything any more."""
        idle, self._idle = self._idle, []
        self._num -= len(idle)
        for reader in idle:
            reader.close()

    def _take(self, deadline: float) -> Reader:
        with self._change:
            if (now := _environment()) != self._environment:
                self._environment = now
                self.forget()
            while (reader := next((one for one in reversed(self._idle) if one.ready), None)) is None:
                if not self._idle and self._num < MOST:
                    self._idle.append(self._new())
                left = deadline - time.monotonic()
                if left <= 0:
                    raise BusyError("other texts are being read")
                # What imports tells nobody when it is done.
                self._change.wait(min(left, _LOOK_S))
            self._idle.remove(reader)
            if not self._idle and self._num < MOST:
                # One imports while this one reads, so that the next to ask does not wait for that.
                self._idle.append(self._new())
            return reader

    def _new(self) -> Reader:
        reader = Reader(self._first, self._environment)
        self._num += 1
        return reader

    def _give_back(self, reader: Reader) -> None:
        with self._change:
            if reader.alive and reader.environment == self._environment:
                self._idle.append(reader)
            else:
                reader.close()
                self._num -= 1
                # Imports while nobody waits for it, and is the last to be taken.
                self._idle.insert(0, self._new())
            self._change.notify()


def prepare(first: Callable[[], object], number: int) -> None:
    """Start readers before anybody waits for one; each calls `first`, a module's function, to import what it needs."""
    _pool.prepare(f"{first.__module__}:{first.__qualname__}", number)


def began() -> bool:
    """Whether readers that were prepared have begun to read; stays so, whatever a text does to one of them later."""
    return _pool.began()


def read(work: Callable[..., _T], *given: Any, limits: ReadingLimits) -> _T:
    """What `work(*given)` gives, done elsewhere; with threads about, all of it must be fit to be pickled.

    Raises:
        OverLimitError: it took more than the limits allow.
        BusyError: no reader was free in time, or it had too little processor time in `limits.wall_s`.
        Exception: what the work raised.
    """
    if threading.active_count() == 1:
        return in_fork(lambda: work(*given), limits)
    return _pool.read(work, given, limits)


def _environment() -> dict[str, str]:
    """Settings that a reader was born with; a process changes them in tests alone."""
    return {name: value for name, value in os.environ.items() if name.startswith("GRADER_")}


def _begin_anew() -> None:
    # A fork's readers are its parent's.
    global _pool
    _pool = _Pool()


def _end() -> None:
    _pool.forget()


_pool = _Pool()
os.register_at_fork(after_in_child=_begin_anew)
atexit.register(_end)
