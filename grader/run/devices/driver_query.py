"""Ask the NVIDIA driver in a process of its own, with a limit: one that hangs must hang nobody who asks.

A process that waits inside a broken driver may not even die of SIGKILL. It is left behind, then, and while it is there
no other is started, so that there is never more than one.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from dataclasses import dataclass

from grader.json_reader import read_json
from grader.run.devices.hardware import Gpu
from grader.settings import CHECKOUT

LIMIT_S = 8.0
"""With the start of a command, an answer within ten. A driver without persistence mode needs a second for each GPU."""
_SILENCE_S = 60.0
"""Who asks often does not wait each time for a driver that hung a moment ago."""
_DYING_S = 0.5


@dataclass(frozen=True, slots=True)
class DriverAnswer:
    """What the driver says.

    Attributes:
        gpus: by index, unfit ones too; no_gpus: why there is none, "" where there are some.
        hangs: it gave no answer in time.
    """

    gpus: tuple[Gpu, ...]
    no_gpus: str
    hangs: bool = False


class _Query:
    """The state of asking, once per process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.left: subprocess.Popen[str] | None = None
        self.silent_until_s = 0.0


_query = _Query()


def ask_driver() -> DriverAnswer:
    """All GPUs as the driver tells them right now; within `LIMIT_S` seconds, whatever it does."""
    with _query.lock:
        stuck = _query.left is not None and _query.left.poll() is None
        if stuck or time.monotonic() < _query.silent_until_s:
            return _hangs()
        process = subprocess.Popen(
            [sys.executable, "-m", "grader.run.devices.nvml"],
            cwd=CHECKOUT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            said, complaint = process.communicate(timeout=LIMIT_S)
        except BaseException as error:
            _abandon(process)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            _query.silent_until_s = time.monotonic() + _SILENCE_S
            return _hangs()
    try:
        return read_json(DriverAnswer, said)
    except ValueError:
        last = complaint.strip().rpartition("\n")[2] or f"exit code {process.returncode}"
        return DriverAnswer((), f"asking the NVIDIA driver failed: {last}")


def _hangs() -> DriverAnswer:
    return DriverAnswer((), f"the NVIDIA driver did not answer within {LIMIT_S:g} s", hangs=True)


def _abandon(process: subprocess.Popen[str]) -> None:
    process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_DYING_S)
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    _query.left = process
