"""How a run ended, judged from how its ranks ended; and the end of whatever still runs."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

from grader.launch.bounds import kill_s
from grader.launch.endings.failure import last_words
from grader.launch.launchers.launcher import Launcher
from grader.launch.ranks.rank_process import RankProcess
from grader.launch.ranks.user import end_user
from grader.launch.record import crash_reason
from grader.launch.spec import LaunchSpec
from grader.launch.system.preflight import UnfitDevicesError
from grader.launch.system.process_tree import ProcessTree
from grader.launch.system.processes import descendants, send_all

_TERM_GRACE_S = 1.5
_LEFTOVER_GRACE_S = 0.3
_LEAVING_GRACE_S = 3.0
"""For what is at work, which may be its own end: an interpreter with torch in it goes slowly on a busy machine."""
_FEW = 64

TurnUntil = Callable[[Callable[[], bool], float], None]
"""Keeps the supervisor's loop turning until something holds, or for so many seconds."""


def judge_ending(
    spec: LaunchSpec, ranks: list[RankProcess], complaint: str, *, kernel_killed: bool, contained: bool
) -> tuple[str, str]:
    """The ending of a run that nobody stopped for its time, memory or standstill, and a sentence for people.

    Args:
        spec: the run.
        ranks: all of them, ended.
        complaint: of the launcher.
        kernel_killed: the kernel ended some process for lack of memory meanwhile.
        contained: it can only have been one of this run's.
    """
    failed = [rank for rank in ranks if rank.exit_code and not rank.killed_by_judge]
    failed.sort(key=lambda rank: rank.ended_s or 0.0)
    for rank in failed:
        if rank.exit_code == -signal.SIGKILL and kernel_killed:
            return "out_of_memory", f"The kernel ended {spec.name(rank.rank)}: there was no memory left."
        words = last_words(rank.err.end_text())
        if words is not None and words.out_of_memory:
            return "out_of_memory", f"An allocation failed: {crash_reason(spec, rank)}."
    if failed:
        reason = crash_reason(spec, failed[0])
        return "crashed", f"{reason[0].upper()}{reason[1:]}."
    if spec.nnodes > 1 and any(rank.killed_by_judge for rank in ranks):
        return "crashed", f"The ranks of node {spec.node_rank} were ended because one on another node failed."
    if complaint:
        return "crashed", complaint
    if kernel_killed and contained:
        # Some child of a rank, and the ranks went on without it: the run is not what it was meant to be.
        return "out_of_memory", "The kernel ended a process of the run: there was no memory left."
    ended = [rank for rank in ranks if rank.exit_code is not None]
    if len(ended) < len(ranks):
        # A script that starts its ranks itself.
        return "completed", f"The script and {len(ended)} of its {len(ranks)} ranks ended with exit code 0."
    return "completed", f"All {len(ranks)} ranks ended by themselves with exit code 0."


def stop_ranks(
    spec: LaunchSpec,
    launcher: Launcher,
    ranks: list[RankProcess],
    tree: ProcessTree,
    turn_until: TurnUntil,
    *,
    gently: bool,
) -> None:
    """SIGTERM, then SIGKILL; returns when the launcher has nothing left to run.

    Args:
        spec, launcher, ranks, tree: of the run; turn_until: the supervisor's loop.
        gently: False leaves SIGTERM out.

    Raises:
        OSError: something does not die, and nobody after us will end it.
        UnfitDevicesError: a rank on a GPU does not die.
    """
    limit_s = kill_s(len(spec.gpus))
    for rank in ranks:
        rank.killed_by_judge = rank.killed_by_judge or rank.alive
    if gently:
        tree.refresh()
        send_all(tree.without(launcher.own_pids), signal.SIGTERM)
        turn_until(lambda: launcher.over, _TERM_GRACE_S)
    deadline = time.monotonic() + limit_s
    while not launcher.over and time.monotonic() < deadline:
        tree.refresh()
        theirs = tree.without(launcher.own_pids)
        if len(theirs) > _FEW and spec.rank_uid and os.getuid() == 0:
            # A crowd that forks faster than a list of it is worked off.
            end_user(spec.rank_uid)
        send_all(theirs, signal.SIGKILL)
        turn_until(lambda: launcher.over, 0.1)
    if not launcher.over and not any(rank.alive and rank.pid for rank in ranks):
        # Only the launcher's own process is left, slow to go on a busy machine; it has nothing more to tell.
        tree.refresh()
        send_all(tree.only(launcher.own_pids), signal.SIGKILL)
        turn_until(lambda: launcher.over, limit_s)
    if not launcher.over and spec.gpus:
        gpus = [spec.gpus[spec.local_rank(rank.rank)] for rank in ranks if rank.alive]
        raise UnfitDevicesError(tuple(gpus), f"a rank on it outlived SIGKILL for {limit_s:.0f} s")
    if not launcher.over and not spec.contained:
        raise OSError("a rank outlived SIGKILL: it hangs inside the kernel")
    for rank in ranks:
        if rank.alive:
            # Killed, and slow to go on a busy machine; the end of the container is the end of all that is in it.
            rank.ended(-signal.SIGKILL, rank.last_moved_s)


def sweep(
    spec: LaunchSpec,
    launcher: Launcher,
    ranks: list[RankProcess],
    tree: ProcessTree,
    turn_until: TurnUntil,
    reap: Callable[[], None],
) -> None:
    """Give what the ranks left running a moment to go by itself, then count and end it; raises as `stop_ranks`."""

    def remaining() -> list[int]:
        tree.refresh()
        return [pid for pid, one in tree.without(launcher.own_pids).items() if not one.zombie]

    at_work_s = time.monotonic()

    def gone_or_idle() -> bool:
        nonlocal at_work_s
        left = remaining()
        # Whoever left a crowd behind is not about to tidy it up.
        if len(left) <= _FEW and any(tree.processes[pid].working for pid in left):
            at_work_s = time.monotonic()
        return not left or time.monotonic() - at_work_s > _LEFTOVER_GRACE_S

    if remaining():
        turn_until(gone_or_idle, _LEAVING_GRACE_S)
        for pid in remaining():
            tree.owners.get(pid, ranks[0]).leftovers += 1
    limit_s = kill_s(len(spec.gpus))
    left = end_descendants(limit_s, reap, uid=spec.rank_uid)
    if left and spec.gpus:
        raise UnfitDevicesError(spec.gpus, f"{left} processes of a run outlived SIGKILL for {limit_s:.0f} s")
    if left and not spec.contained:
        raise OSError(f"{left} processes of the run outlived SIGKILL")


def end_descendants(
    limit_s: float, reap: Callable[[], None] | None = None, spared: int = 0, uid: int = 0
) -> int:
    """SIGKILL every descendant but `spared` until none is left; returns how many are, after `limit_s` seconds.

    A process that forks as fast as it is killed loses: all of a snapshot are stopped before any is killed, and where
    they have a user of their own (`uid`, 0: none), all of that user's end at once.
    """
    deadline = time.monotonic() + limit_s
    while True:
        if reap is not None:
            reap()
        else:
            _bury()
        left = descendants(os.getpid())
        left.pop(spared, None)
        living = {pid: one for pid, one in left.items() if not one.zombie}
        if not left or time.monotonic() > deadline:
            return len(living)
        if len(living) > 4 and uid and os.getuid() == 0:
            end_user(uid)
        elif len(living) > 4:
            send_all(living, signal.SIGSTOP)
        send_all(living, signal.SIGKILL)
        time.sleep(0.002)


def _bury() -> None:
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return
        except ChildProcessError:
            return
