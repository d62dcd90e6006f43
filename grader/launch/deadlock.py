"""When a silent run is a deadlock: every live rank blocked in a collective, twice in a row, and nothing moved between.

Silence alone proves nothing: a compiler may take its time, rank 0 may prepare data while the others wait. So the
stacks say where a rank waits, and the kernel says that it really stood still there.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from grader.launch.processes import Usage, blocked_switches
from grader.launch.stacks import StackFrame, in_folder, operation
from grader.launch.watched import WatchedRank

# Writing a dump wakes a blocked thread a few times and costs a little CPU; progress costs far more.
_MOST_SWITCHES = 40
_MOST_CPU_SHARE = 0.02
_MOST_CPU_S = 0.06


@dataclass(frozen=True, slots=True)
class Standstill:
    """One rank at one look.

    Attributes:
        operation: what it waits in; frames: where.
        switches: of its main thread; cpu_s: of the rank and all its descendants.
        last_moved_s: when it last wrote anything.
    """

    operation: str
    frames: tuple[StackFrame, ...]
    switches: int | None
    cpu_s: float
    last_moved_s: float


Look = dict[int, Standstill]
"""All live ranks at one moment."""


def look(
    ranks: list[WatchedRank], owners: dict[int, int], seen: dict[int, Usage], submission_dir: str
) -> Look:
    """What every live rank does now; to be called right after their stacks came.

    Args:
        ranks: all ranks; those that have ended are left out.
        owners: process id → rank, descendants included.
        seen: the processes' usage now.
        submission_dir: where the learner's frames are.
    """
    cpu_s = dict.fromkeys(range(len(ranks)), 0.0)
    for pid, usage in seen.items():
        if pid in owners:
            cpu_s[owners[pid]] += usage.cpu_s
    return {
        rank.rank: Standstill(
            operation=operation(rank.stack.frames, submission_dir) if rank.stack else "",
            frames=rank.stack.frames if rank.stack else (),
            switches=blocked_switches(rank.pid),
            cpu_s=cpu_s[rank.rank],
            last_moved_s=rank.last_moved_s,
        )
        for rank in ranks
        if rank.alive
    }


def stands_still(before: Look, after: Look, gap_s: float) -> bool:
    """Whether two looks, `gap_s` apart, show the same ranks blocked at the same places with nothing done between."""
    if not after or before.keys() != after.keys():
        return False
    return all(_blocked(before[rank], after[rank], gap_s) for rank in after)


def _blocked(before: Standstill, after: Standstill, gap_s: float) -> bool:
    if not after.operation or before.frames != after.frames or before.last_moved_s != after.last_moved_s:
        return False
    if (after.switches or 0) - (before.switches or 0) > _MOST_SWITCHES:
        return False
    return after.cpu_s - before.cpu_s <= _MOST_CPU_S + _MOST_CPU_SHARE * gap_s


def describe(seen: Look, submission_dir: str) -> str:
    """Part of a sentence: which rank waits where for what."""
    parts = []
    for rank, still in sorted(seen.items()):
        site = next((frame for frame in still.frames if in_folder(frame.path, submission_dir)), None)
        where = f" at {Path(site.path).relative_to(submission_dir)}:{site.line}" if site is not None else ""
        parts.append(f"rank {rank} waits{where} ({still.operation})")
    return ", ".join(parts)
