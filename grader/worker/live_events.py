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
LiveEvent = tuple[str, dict[str, Any]]


class LiveEvents:
    """Collects events of one attempt; filled by whoever executes it, emptied by its heartbeat."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._events: list[LiveEvent] = []
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

    def set_time_limit(self, wall_s: float) -> None:
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
            self._events.append(("phase", {"phase": phase, "elapsed_s": round(now - self._began, 3)}))

    def end(self) -> None:
        """The last phase is over."""
        now = time.monotonic()
        self.seconds[self.phase] = self.seconds.get(self.phase, 0.0) + now - self._entered
        self._entered = now

    def on_progress(self, progress: Progress) -> None:
        """What the pipeline or its runtime says of how it gets on."""
        if progress.phase.startswith("calibrate"):
            self._calibrating = True
        elif progress.phase == "prepare":
            self._calibrating = False
        if self._calibrating or progress.phase not in _PHASES:
            # Warming up, waiting for devices, measuring what this machine can do.
            self.since = time.monotonic()
            return
        if progress.phase != self.phase:
            self.enter(progress.phase)
        if progress.phase == "run":
            with self._lock:
                self._note_epoch(progress)
                self._note_logs(progress)

    def take(self) -> list[LiveEvent]:
        """What has come since the last call."""
        with self._lock:
            taken, self._events = self._events, []
        return taken

    def put_back(self, taken: list[LiveEvent]) -> None:
        """These could not be published; they come again."""
        with self._lock:
            self._events = taken + self._events

    def _note_epoch(self, progress: Progress) -> None:
        if progress.epoch is None:
            return
        latest = (progress.epoch, max(progress.steps, default=0) // 10)
        if latest != self._epoch:
            self._epoch = latest
            data = {"epoch": progress.epoch, "of": None, "loss": progress.loss}
            # Of many that come between two publications the newest says it all.
            if self._events and self._events[-1][0] == "epoch":
                self._events.pop()
            self._events.append(("epoch", data))

    def _note_logs(self, progress: Progress) -> None:
        share = min(1.0, progress.elapsed_s / self._wall_s)
        allowed = _AT_ONCE_BYTES + int((LOG_BYTES - _AT_ONCE_BYTES) * share)
        for output in progress.printed:
            size = len(output.text.encode("utf-8", "replace"))
            place = (output.rank, output.stream)
            if self._spent_bytes + size > allowed:
                self._cut.add(place)
                continue
            self._spent_bytes += size
            text = f"[…]\n{output.text}" if place in self._cut else output.text
            self._cut.discard(place)
            self._events.append(("log", {"rank": output.rank, "stream": output.stream, "text": text}))
