"""How far an attempt has come, by its events: which phase, since when, which epoch, what each rank printed last.

The page is drawn from it, so that it is whole before any script runs and without one. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from grader.store.events import StoredEvent
from grader.web.live.public_events import PHASES, public_event

_TAIL = 16_384


@dataclass(frozen=True, slots=True)
class PhaseProgress:
    """One phase: `done`, `now` or `ahead`; when it began and, if it is over, how long it took in seconds."""

    name: str
    state: str
    since: datetime | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class EpochProgress:
    """The last epoch that was reported; numbers may be None."""

    number: int
    of: int | None
    loss: float | None


@dataclass(frozen=True, slots=True)
class RankLog:
    """The end of what one rank printed: (stream, text) pieces in order."""

    rank: int
    pieces: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class AttemptProgress:
    """All of it; `last` is the number of the last event in it."""

    steps: tuple[PhaseProgress, ...]
    epoch: EpochProgress | None
    logs: tuple[RankLog, ...]
    cancelling: bool
    tries: int
    last: int


@dataclass(slots=True)
class _Folding:
    began: dict[str, datetime] = field(default_factory=dict)
    took: dict[str, float] = field(default_factory=dict)
    now: str = "queue"
    epoch: EpochProgress | None = None
    logs: dict[int, list[tuple[str, str]]] = field(default_factory=dict)
    cancelling: bool = False
    tries: int = 0
    last: int = 0

    def enter(self, phase: str, at: datetime) -> None:
        if phase != self.now and self.now in self.began:
            self.took[self.now] = (at - self.began[self.now]).total_seconds()
        if phase not in self.began or phase != self.now:
            self.began[phase] = at
        for later in PHASES[PHASES.index(phase) + 1 :]:
            # A second try begins anew.
            self.began.pop(later, None)
            self.took.pop(later, None)
        self.now = phase


def attempt_progress(events: Iterable[StoredEvent]) -> AttemptProgress:
    """How far it has come after these events, in their order."""
    done = _Folding()
    for event in events:
        done.last = event.seq
        public = public_event(event)
        if public is not None:
            _fold(done, event.at, *public)
    current = PHASES.index(done.now)
    steps = tuple(
        PhaseProgress(
            name,
            "done" if index < current else "now" if index == current else "ahead",
            done.began.get(name),
            done.took.get(name) if index < current else None,
        )
        for index, name in enumerate(PHASES)
    )
    logs = tuple(RankLog(rank, tuple(pieces)) for rank, pieces in sorted(done.logs.items()))
    return AttemptProgress(steps, done.epoch, logs, done.cancelling, done.tries, done.last)


def _fold(done: _Folding, at: datetime, kind: str, data: dict[str, Any]) -> None:
    if kind in ("queued", "requeued"):
        done.enter("queue", at)
        done.epoch, done.logs = None, {}
    elif kind == "claimed":
        done.enter("prepare", at)
        done.tries = int(data["tries"] or 0)
    elif kind == "phase" and data["phase"] in PHASES:
        done.enter(data["phase"], at)
    elif kind == "epoch" and isinstance(data["epoch"], int):
        done.epoch = EpochProgress(data["epoch"], data["of"], data["loss"])
    elif kind == "log" and isinstance(data["rank"], int) and isinstance(data["text"], str):
        pieces = done.logs.setdefault(data["rank"], [])
        pieces.append((str(data["stream"]), data["text"]))
        while len(pieces) > 1 and sum(len(text) for _, text in pieces) > _TAIL:
            pieces.pop(0)
    elif kind == "cancel_requested":
        done.cancelling = True
