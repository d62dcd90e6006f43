"""What people see of an attempt while it goes on: phases, epochs, the ends of the ranks' logs. Display only.

Bounded: of everything that the ranks print, at most `LOG_BYTES` per attempt become events, dealt out over the run's
time so that its end is seen, too. Nothing of a calibration is shown: it runs the task's own submissions.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from grader.run.runtime import Progress

LOG_BYTES = 64 << 10
_AT_ONCE_BYTES = 16 << 10
_PHASES = ("prepare", "run", "evaluate", "report")
Told = tuple[str, dict[str, Any]]


class Live:
    """Collects events of one attempt; filled by whoever judges, emptied by its pulse."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._told: list[Told] = []
        self._spent_bytes = 0
        self._cut: set[tuple[int, str]] = set()
        self._calibrating = False
        self._epoch: tuple[Any, ...] = ()
        self._wall_s = 60.0
        self.phase = ""
        """The phase that the attempt is in."""
        self.since = self._began
        """When something last changed that says that the judging gets on, on the monotonic clock."""
        self.seconds: dict[str, float] = {}
        """Seconds spent in phases that are over."""
        self._entered = self._began
        self.enter("prepare")

    def expect(self, wall_s: float) -> None:
        """How long a run may take."""
        self._wall_s = wall_s

    @property
    def wall_s(self) -> float:
        """How long a run may take, in seconds."""
        return self._wall_s

    def enter(self, phase: str) -> None:
        """A phase begins."""
        now = time.monotonic()
        with self._lock:
            self.since = now
            if phase == self.phase:
                return
            if self.phase:
                self.seconds[self.phase] = self.seconds.get(self.phase, 0.0) + now - self._entered
            self.phase, self._entered = phase, now
            self._told.append(("phase", {"phase": phase, "elapsed_s": round(now - self._began, 3)}))

    def end(self) -> None:
        """The last phase is over."""
        now = time.monotonic()
        self.seconds[self.phase] = self.seconds.get(self.phase, 0.0) + now - self._entered
        self._entered = now

    def progress(self, sign: Progress) -> None:
        """A sign of the pipeline or its runtime."""
        if sign.phase.startswith("calibrate"):
            self._calibrating = True
        elif sign.phase == "prepare":
            self._calibrating = False
        if self._calibrating or sign.phase not in _PHASES:
            # Warming up, waiting for devices, measuring what this machine can do.
            self.since = time.monotonic()
            return
        if sign.phase != self.phase:
            self.enter(sign.phase)
        if sign.phase == "run":
            with self._lock:
                self._note_epoch(sign)
                self._note_logs(sign)

    def take(self) -> list[Told]:
        """What has come since the last call."""
        with self._lock:
            told, self._told = self._told, []
        return told

    def put_back(self, told: list[Told]) -> None:
        """These could not be told; they come again."""
        with self._lock:
            self._told = told + self._told

    def _note_epoch(self, sign: Progress) -> None:
        if sign.epoch is None:
            return
        seen = (sign.epoch, max(sign.steps, default=0) // 10)
        if seen != self._epoch:
            self._epoch = seen
            data = {"epoch": sign.epoch, "of": None, "loss": sign.loss, "accuracy": None}
            # Of many that come between two tellings the newest says it all.
            if self._told and self._told[-1][0] == "epoch":
                self._told.pop()
            self._told.append(("epoch", data))

    def _note_logs(self, sign: Progress) -> None:
        share = min(1.0, sign.elapsed_s / self._wall_s)
        allowed = _AT_ONCE_BYTES + int((LOG_BYTES - _AT_ONCE_BYTES) * share)
        for said in sign.said:
            size = len(said.text.encode("utf-8", "replace"))
            place = (said.rank, said.stream)
            if self._spent_bytes + size > allowed:
                self._cut.add(place)
                continue
            self._spent_bytes += size
            text = f"[…]\n{said.text}" if place in self._cut else said.text
            self._cut.discard(place)
            self._told.append(("log", {"rank": said.rank, "stream": said.stream, "text": text}))
