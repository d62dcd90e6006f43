"""A word from a station to its slots that needs no message: a few bytes of memory that they share.

Made before the slots are forked, read between attempts and at every heartbeat. Only ever written by the station, except
`tell`, by which slots say what they did.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
from enum import IntEnum
from typing import Any

_LONGEST = 4000
"""Bytes of one word: fewer than a pipe takes in one piece, so that those of several slots never mix."""


class Order(IntEnum):
    """What slots are to do, the later the stronger."""

    WORK = 0
    FINISH = 1
    """Finish what you have, take nothing more."""
    GIVE_BACK = 2
    """There is no more time: end the run and give the attempt back."""


class Orders:
    """Shared by the processes of one worker."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 3)
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._station = os.getpid()

    @property
    def order(self) -> Order:
        """The order in force. One whose station is gone takes nothing more: nobody would restart or stop it."""
        order = Order(self._memory[0])
        if order is Order.WORK and self._station not in (os.getpid(), os.getppid()):
            return Order.FINISH
        return order

    def give(self, order: Order) -> None:
        """An order is never taken back."""
        self._memory[0] = max(order, self._memory[0])

    @property
    def held(self) -> bool:
        """Whether this host is unwell, so that nothing is to be claimed just now."""
        return bool(self._memory[1])

    def hold(self, held: bool) -> None:
        """Say that it is, or that it is well again."""
        self._memory[1] = held

    @property
    def num_gpus(self) -> int:
        """Devices of this host that are fit for use."""
        return self._memory[2]

    def offer(self, num_gpus: int) -> None:
        """Say how many devices are fit."""
        self._memory[2] = min(num_gpus, 255)

    def tell(self, word: dict[str, Any]) -> None:
        """A slot's word to its station; lost where nobody listens."""
        line = json.dumps(word).encode() + b"\n"
        if len(line) <= _LONGEST:
            with contextlib.suppress(OSError):
                os.write(self._writer, line)

    def words(self, limit_s: float) -> list[dict[str, Any]]:
        """What slots told within the time, for the station's one listener."""
        import select

        if not select.select([self._reader], [], [], limit_s)[0]:
            return []
        found = []
        for line in os.read(self._reader, 1 << 16).splitlines():
            with contextlib.suppress(ValueError):
                word = json.loads(line)
                if isinstance(word, dict):
                    found.append(word)
        return found
