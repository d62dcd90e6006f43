"""What honest code can't produce in a trace: told by the supervisor's stamps and by the order of events.

Lateness alone is no suspicion: a rank may be blocked and a supervisor busy. Nothing here accuses anybody; an
instructor decides.
"""

from __future__ import annotations

from grader.probe.trace import events
from grader.run.trace_lines import TraceLine

AHEAD_S = 0.5
"""An event can't have happened later than it was received; clocks are the same one, half a second is generous."""
BACKWARDS_S = 2.0
"""Threads may overtake each other between taking the time and writing, but not by seconds."""
LATE_S = 3.0
PENDING_BYTES = 4 << 20
"""More than a pipe (at most 1 MiB) and the supervisor's own buffers can hold between a rank and a stamp."""
BURST_STEPS = 20
BURST_S = 1.0
BURST_SPREAD_S = 30.0
_MAX_SUSPICIONS = 20


class Suspicions:
    """Watches one rank's events in order of receipt and remembers what could not be."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._found: dict[str, str] = {}
        self._latest_t = 0.0
        self._first = True
        self._started = False
        self._ended = False
        self._next_step = 0
        self._late_from: float | None = None
        self._pending = 0
        self._burst: list[tuple[float, float]] = []

    def sentences(self) -> tuple[str, ...]:
        """One sentence per kind of suspicion, about its first occurrence."""
        return tuple(self._found.values())

    def _add(self, kind: str, sentence: str) -> None:
        if len(self._found) < _MAX_SUSPICIONS:
            self._found.setdefault(kind, sentence)

    def look_at_time(self, line: TraceLine) -> None:
        """Hold an event's own time against the stamp and against earlier events."""
        if line.t > line.received + AHEAD_S:
            self._add(
                "ahead",
                f"An event of kind {line.kind!a} claims {line.t:.3f} s but had been received at "
                f"{line.received:.3f} s.",
            )
        if line.t < self._latest_t - BACKWARDS_S:
            self._add(
                "backwards",
                f"An event of kind {line.kind!a} claims {line.t:.3f} s although one of {self._latest_t:.3f} s had "
                "been received before it.",
            )
        self._latest_t = max(self._latest_t, line.t)
        self._look_at_pending(line)

    def _look_at_pending(self, line: TraceLine) -> None:
        if line.received - line.t <= LATE_S:
            self._late_from, self._pending = None, 0
            return
        if self._late_from is None:
            self._late_from = line.received
        if line.t < self._late_from - LATE_S:
            self._pending += line.num_bytes
        if self._pending > PENDING_BYTES:
            self._add(
                "pending",
                f"More than {PENDING_BYTES >> 20} MiB of events claim to be older than "
                f"{self._late_from - LATE_S:.1f} s but were received after {self._late_from:.1f} s: more than can be "
                "on the way.",
            )

    def look_at_order(self, kind: str) -> None:
        """Every rank's trace begins with START, once, and has one END."""
        if self._first and kind != events.START:
            self._add("first", f"The first event is of kind {kind!a}, not {events.START!a}.")
        self._first = False
        if kind == events.START:
            if self._started:
                self._add("start", "The probe started twice in one rank.")
            self._started = True
        if kind == events.END:
            if self._ended:
                self._add("end", "The script ended twice in one rank.")
            self._ended = True

    def look_at_start(self, rank: int, world_size: int, num_ranks: int) -> None:
        """A rank knows who it is: it was told by the supervisor."""
        if rank != self._rank:
            self._add("rank", f"Rank {rank} was named in the trace of rank {self._rank}.")
        if world_size < num_ranks:
            self._add("world", f"A world of {world_size} was named where {num_ranks} ranks were started.")

    def look_at_step(self, n: int, line: TraceLine, damaged: bool) -> None:
        """Steps count up by one; gaps are honest only where lines are known to be lost."""
        if n < self._next_step or (n > self._next_step and not damaged):
            self._add("steps", f"Step {n} was told where step {self._next_step} was next.")
        self._next_step = max(self._next_step, n + 1)
        self._burst.append((line.received, line.t))
        if len(self._burst) > BURST_STEPS:
            self._burst.pop(0)
        (first_received, first_t), (last_received, last_t) = self._burst[0], self._burst[-1]
        if (
            len(self._burst) == BURST_STEPS
            and last_received - first_received <= BURST_S
            and last_t - first_t >= BURST_SPREAD_S
        ):
            self._add(
                "burst",
                f"{BURST_STEPS} steps that claim to have taken {last_t - first_t:.1f} s were received within "
                f"{last_received - first_received:.2f} s.",
            )
