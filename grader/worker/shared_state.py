"""What the processes of one worker tell each other without a message: a few bytes of shared memory, and a pipe.

Made before they are forked. The supervisor says how far the worker's end has come, the health reporter how the host is;
both are read between attempts and at every heartbeat. `report` goes the other way: what a process did with an attempt.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import struct
import time
from enum import IntEnum
from typing import Any

_BUSY = struct.Struct("d")
_BUSY_AT = 8
_LONGEST = 4000
"""Bytes of one report: fewer than a pipe takes in one piece, so that those of several processes never mix."""


class ShutdownStage(IntEnum):
    """How far the worker's end has come."""

    RUN = 0
    """It is not to end."""
    DRAIN = 1
    """Finish what runs, take nothing more."""
    REQUEUE = 2
    """There is no more time: end the run and give the attempt back."""


class SharedState:
    """Shared by the processes of one worker."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _BUSY_AT + _BUSY.size)
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._supervisor = os.getpid()

    @property
    def stage(self) -> ShutdownStage:
        """The stage reached. Without a supervisor nothing more is taken: nobody would replace or end the process."""
        stage = ShutdownStage(self._memory[0])
        if stage is ShutdownStage.RUN and self._supervisor not in (os.getpid(), os.getppid()):
            return ShutdownStage.DRAIN
        return stage

    def advance_to(self, stage: ShutdownStage) -> None:
        """Go on to a stage; there is no way back."""
        self._memory[0] = max(stage, self._memory[0])

    @property
    def out_of_service(self) -> bool:
        """Whether this host is unwell, so that nothing is to be claimed just now."""
        return bool(self._memory[1])

    def set_out_of_service(self, out_of_service: bool) -> None:
        """Say that it is, or that it is well again."""
        self._memory[1] = out_of_service

    @property
    def num_gpus(self) -> int:
        """Devices of this host that are fit for use."""
        return self._memory[2]

    def set_num_gpus(self, num_gpus: int) -> None:
        """Say how many devices are fit."""
        self._memory[2] = min(num_gpus, 255)

    @property
    def idle_s(self) -> float:
        """Seconds since one of its processes had an attempt, or began to ask for one; 0.0: none has asked yet."""
        (busy,) = _BUSY.unpack_from(self._memory, _BUSY_AT)
        return max(0.0, time.monotonic() - busy) if busy else 0.0

    def note_busy(self) -> None:
        """Say that a process has an attempt, or begins to ask for one."""
        _BUSY.pack_into(self._memory, _BUSY_AT, time.monotonic())

    def report(self, report: dict[str, Any]) -> None:
        """Say what became of an attempt; lost where nobody listens."""
        line = json.dumps(report).encode() + b"\n"
        if len(line) <= _LONGEST:
            with contextlib.suppress(OSError):
                os.write(self._writer, line)

    def read_reports(self, limit_s: float) -> list[dict[str, Any]]:
        """What was reported within the time, for the one process that listens."""
        import select

        if not select.select([self._reader], [], [], limit_s)[0]:
            return []
        found = []
        for line in os.read(self._reader, 1 << 16).splitlines():
            with contextlib.suppress(ValueError):
                report = json.loads(line)
                if isinstance(report, dict):
                    found.append(report)
        return found
