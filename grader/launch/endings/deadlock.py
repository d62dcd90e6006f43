"""When a silent run is a deadlock: every live rank waits for others, twice in a row, and nothing moved between.

Silence alone proves nothing: a compiler may take its time, rank 0 may prepare data while the others wait. There are two
proofs that a rank waits. Its stack says that it sits in a collective, and the kernel that it really stood still there.
Or torch's own records say that it has begun a collective which the others have not, and still have not at the second
look: the only proof with NCCL, where a rank that waits keeps its processor busy, as one with a long kernel does. What
all members have begun alike proves nothing then, as it may be queued behind such a kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.launch.endings import stacks
from grader.launch.endings.flight_records import FlightRecord, held_by, on_device, stuck, tell, write_groups
from grader.launch.endings.stacks import HOST_WAITS, StackFrame, in_folder
from grader.launch.ranks.rank_process import RankProcess, take_stacks
from grader.launch.spec import LaunchSpec
from grader.launch.system.process_tree import ProcessTree
from grader.launch.system.processes import blocked_switches

# Writing a dump wakes a blocked thread a few times and costs a little CPU; progress costs far more.
_MOST_SWITCHES = 40
_MOST_CPU_SHARE = 0.02
_MOST_CPU_S = 0.06
_TO_COME_S = 20.0
"""For ranks that the script has not started yet: what it waits for before that, no stack says."""


@dataclass(frozen=True, slots=True)
class Standstill:
    """One rank at one look.

    Attributes:
        operation: what it waits in; frames: where.
        switches: of its main thread; cpu_s: of the rank and all its descendants.
        working: some child of it runs or waits for a disk: on a busy machine that takes long and costs little.
        last_moved_s: when it last wrote anything.
        record: its collectives, None where it did not say.
    """

    operation: str
    frames: tuple[StackFrame, ...]
    switches: int | None
    cpu_s: float
    working: bool
    last_moved_s: float
    record: FlightRecord | None = None


Snapshot = dict[int, Standstill]
"""All live ranks at one moment."""


def take_snapshot(ranks: list[RankProcess], tree: ProcessTree, submission_dir: str) -> Snapshot:
    """What every live rank does now; to be called right after their stacks came.

    Args:
        ranks: all ranks; those that have ended are left out.
        tree: what they and their descendants did at its last look.
        submission_dir: where the learner's frames are.
    """
    cpu_s, working = tree.cpu_s(), tree.working()
    return {
        rank.rank: Standstill(
            operation=stacks.operation(rank.stack.frames, submission_dir) if rank.stack else "",
            frames=rank.stack.frames if rank.stack else (),
            switches=blocked_switches(rank.pid),
            cpu_s=cpu_s[rank.rank],
            working=rank.rank in working,
            last_moved_s=rank.last_moved_s,
            record=rank.record,
        )
        for rank in ranks
        if rank.alive
    }


def stands_still(before: Snapshot, after: Snapshot, gap_s: float) -> bool:
    """Whether two looks, `gap_s` apart, show the same ranks waiting at the same places with nothing done between."""
    if not after or before.keys() != after.keys():
        return False
    records = {rank: seen.record for rank, seen in after.items()}
    spinning = awake(before, after, gap_s)
    return all(_same_place(before[rank], seen) for rank, seen in after.items()) and all(
        before[rank].record == records[rank] and stuck(rank, records) for rank in spinning
    )


def awake(before: Snapshot, after: Snapshot, gap_s: float) -> tuple[int, ...]:
    """Ranks of which the kernel does not say that they stood still in what their stacks name."""
    return tuple(rank for rank, seen in after.items() if not _sleeps(before[rank], seen, gap_s))


def _same_place(before: Standstill, after: Standstill) -> bool:
    if before.frames != after.frames or before.last_moved_s != after.last_moved_s:
        return False
    return not before.working and not after.working


def _sleeps(before: Standstill, after: Standstill, gap_s: float) -> bool:
    if not after.operation:
        return False
    if on_device(after.record) and after.operation not in HOST_WAITS:
        return False
    if (after.switches or 0) - (before.switches or 0) > _MOST_SWITCHES:
        return False
    return after.cpu_s - before.cpu_s <= _MOST_CPU_S + _MOST_CPU_SHARE * gap_s


def describe(spec: LaunchSpec, seen: Snapshot) -> str:
    """Part of a sentence: which rank waits where for what."""
    parts, submission_dir = [], spec.submission_dir
    records = {rank: still.record for rank, still in seen.items()}
    for rank, still in sorted(seen.items()):
        site = next((frame for frame in still.frames if in_folder(frame.path, submission_dir)), None)
        where = f" at {Path(site.path).relative_to(submission_dir)}:{site.line}" if site is not None else ""
        held = held_by(rank, records)
        operation = still.operation or (held.operation if held is not None else "")
        parts.append(f"{spec.name(rank)} waits{where} ({operation})")
    return ", ".join(parts)


class StandstillWatch:
    """Looks at the ranks once they are silent, and again after a while, for as long as they stay so."""

    def __init__(
        self, spec: LaunchSpec, ranks: list[RankProcess], tree: ProcessTree, now: Callable[[], float]
    ) -> None:
        self._spec = spec
        self._now = now
        self._ranks = ranks
        self._tree = tree
        self._stacks_dir = Path(spec.record_dir, "stacks")
        self._look: Snapshot = {}
        self._awake: tuple[int, ...] = ()
        self._looked_s = -math.inf
        self._since_s = 0.0
        self.stood_s = 0.0
        """Time between the first and the last look that agree; 0: something moves, or nobody knows yet."""

    def turn(self) -> bool:
        """Look if it is time; whether something new was found."""
        spec = self._spec
        if self.silent_s < spec.silence_s:
            changed, self._look, self._looked_s, self.stood_s = self.stood_s > 0, {}, -math.inf, 0.0
            return changed
        if self._now() - self._looked_s < spec.stack_gap_s:
            return False
        here = [rank for rank in self._ranks if rank.alive and (rank.pid or spec.launcher != "python")]
        if not take_stacks(here, self._stacks_dir):
            self._looked_s = self._now()
            return False
        self._tree.refresh()
        seen = take_snapshot(here, self._tree, spec.submission_dir)
        before, self._look, self._looked_s = self._look, seen, self._now()
        if stands_still(before, seen, spec.stack_gap_s):
            stood_s = self._looked_s - self._since_s
            if len(here) < len(self._ranks) and all(r.alive for r in self._ranks) and stood_s < _TO_COME_S:
                return False
            self._awake = awake(before, seen, spec.stack_gap_s)
            self.stood_s = stood_s
            return True
        changed, self._since_s, self.stood_s = self.stood_s > 0, self._looked_s, 0.0
        return changed

    @property
    def silent_s(self) -> float:
        """Time since a rank last wrote anything."""
        return self._now() - max(rank.last_moved_s for rank in self._ranks)

    @property
    def where(self) -> str:
        """Part of a sentence: who waits where for what."""
        return describe(self._spec, self._look)

    @property
    def told(self) -> str:
        """A sentence on how far each rank has come with its collectives, "" where they don't say."""
        known = [rank.rank for rank in self._ranks if rank.rank in self._look or not rank.alive]
        return tell(
            {rank: seen.record for rank, seen in self._look.items()}, {r: self._spec.name(r) for r in known}
        )

    def report(self) -> dict[str, Any]:
        """The same for whoever knows the ranks of other nodes: ours alone do not tell, those may still be at work."""
        return {
            "event": "standing",
            "stood_s": self.stood_s,
            "silent_s": self.silent_s,
            "where": self.where,
            "awake": list(self._awake),
            "records": {
                str(rank): write_groups(seen.record) if seen.record is not None else None
                for rank, seen in self._look.items()
            },
        }
