"""The supervisor of one run: starts the ranks, watches them, ends them, writes down how it went.

One thread, one loop. Reads what ranks write without ever waiting for it, trusts only what the kernel says about
them, and leaves no process behind, however it ends itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from grader.launch.cpu import CpuWatch
from grader.launch.deadlock import Look, describe, look, stands_still
from grader.launch.ending import end_descendants, judge_ending
from grader.launch.environment import prepare_folders
from grader.launch.launcher import ForkLauncher, Launcher
from grader.launch.machine import environment_facts
from grader.launch.memory import MemoryWatch
from grader.launch.processes import (
    Usage,
    adopt_orphans,
    descendants,
    send_all,
)
from grader.launch.record import write_run
from grader.launch.spec import LaunchSpec
from grader.launch.torchrun import TorchrunLauncher
from grader.launch.traffic import TrafficWatch
from grader.launch.user import as_user
from grader.launch.watched import WatchedRank, take_stacks

_TICK_S = 0.04
_BUSY_TICK_S = 0.004
_SAMPLE_S = 0.4
_PROGRESS_S = 0.5
_FAILURE_GRACE_S = 3.0
_TERM_GRACE_S = 1.5
_KILL_GRACE_S = 2.0
_LEFTOVER_GRACE_S = 0.3


class Supervisor:
    """Runs one spec; ranks meet at the store on `store_port`, `say` receives progress as JSON-ready dictionaries."""

    def __init__(self, spec: LaunchSpec, store_port: int, say: Callable[[dict[str, Any]], None]) -> None:
        self._spec = spec
        self._say = say
        self._stacks_dir = Path(spec.record_dir, "stacks")
        for folder in ("trace", "logs", "stacks"):
            Path(spec.record_dir, folder).mkdir(parents=True, exist_ok=True)
        self._ranks = [WatchedRank(spec, rank) for rank in range(spec.nproc_per_node)]
        self._launcher: Launcher = (
            TorchrunLauncher(spec, self._ranks)
            if spec.launcher == "torchrun"
            else ForkLauncher(spec, self._ranks, store_port)
        )
        self._memory = MemoryWatch(contained=spec.contained)
        self._origin = 0.0
        self._interrupted = False
        self._ending = ""
        self._reason = ""
        self._owners: dict[int, int] = {}
        self._seen: dict[int, Usage] = {}
        self._sampled_s = self._told_s = self._looked_s = -1e9
        self._look: Look = {}
        self._busy = False
        self._wakeup, self._waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def run(self) -> None:
        """Run to the end and write `record.json`.

        Raises:
            OSError: this machine could not start or record the run.
        """
        adopt_orphans()
        spec = self._spec
        as_user(spec.rank_uid, lambda: prepare_folders(spec))
        self._watch_signals()
        facts = environment_facts()
        traffic = TrafficWatch(contained=spec.contained or spec.own_network)
        self._cpu = CpuWatch(whole_group=spec.contained and spec.launcher == "fork")
        try:
            self._launcher.prepare()
            self._origin = time.monotonic()
            facts["started_unix_s"] = round(time.time(), 3)
            self._launcher.start(self._origin)
            while not self._launcher.over:
                self._turn()
                self._decide()
                if self._ending:
                    self._stop()
            wall_s = max((rank.ended_s or 0.0 for rank in self._ranks), default=0.0) or self._now()
            self._sweep()
        finally:
            end_descendants(_KILL_GRACE_S)
        for rank in self._ranks:
            rank.close(self._now())
        self._launcher.close(self._now())
        self._cpu.settle(self._ranks)
        for rank in self._ranks:
            if trouble := rank.trouble():
                raise OSError(f"rank {rank.rank} could not be set up: {trouble}")
        ending, reason = self._ending, self._reason
        if not ending:
            ending, reason = judge_ending(spec, self._ranks, self._memory.kernel_killed)
        if spec.contained:
            facts["memory_peak_bytes"] = self._memory.peak_bytes
        write_run(spec, self._ranks, (ending, reason), wall_s, facts, traffic.moved_bytes())

    # -- the loop ----------------------------------------------------------------------------------------------------

    def _turn(self) -> None:
        """Sleep until something happens or a tick is over, take what came, bury who ended."""
        poller = select.poll()
        for descriptor in (self._wakeup, *self._launcher.descriptors):
            poller.register(descriptor, select.POLLIN)
        poller.poll((_BUSY_TICK_S if self._busy else _TICK_S) * 1000)
        with contextlib.suppress(BlockingIOError):
            os.read(self._wakeup, 4096)
        before = sum(rank.out.num_bytes + rank.err.num_bytes + rank.trace.num_bytes for rank in self._ranks)
        now = self._now()
        for rank in self._ranks:
            rank.drain(now)
        after = sum(rank.out.num_bytes + rank.err.num_bytes + rank.trace.num_bytes for rank in self._ranks)
        # A writer that fills its pipe within a tick is served sooner, so that it need not wait for us.
        self._busy = after - before > 1 << 18
        self._launcher.serve(now, self._owners)
        self._reap()

    def _reap(self) -> None:
        while True:
            try:
                pid, status, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if self._launcher.reaped(pid, os.waitstatus_to_exitcode(status), used, self._now()):
                continue
            # An orphan that came to us: what it computed, it computed for the rank it descended from.
            owner = self._owners.pop(pid, None)
            if owner is not None:
                self._ranks[owner].cpu_user_s += used.ru_utime
                self._ranks[owner].cpu_system_s += used.ru_stime
            else:
                self._cpu.orphans_s += used.ru_utime + used.ru_stime

    def _sample(self) -> None:
        self._sampled_s = self._now()
        self._seen = descendants(os.getpid())
        by_pid = {rank.pid: rank.rank for rank in self._ranks if rank.pid}
        for pid, usage in self._seen.items():
            owner = by_pid.get(pid, self._owners.get(pid, self._owners.get(usage.parent)))
            owner = owner if owner is not None else by_pid.get(usage.session)
            if owner is not None:
                self._owners[pid] = owner

    def _decide(self) -> None:
        """End the run where there is a reason to; the gravest first."""
        now = self._now()
        if now - self._told_s >= _PROGRESS_S:
            self._tell(now)
        if self._interrupted:
            self._ending, self._reason = "interrupted", "The judge stopped the run."
        elif now >= self._spec.wall_s:
            self._ending = "timed_out"
            self._reason = f"The run was still going at its limit of {self._spec.wall_s:g} s."
        elif now - self._sampled_s >= _SAMPLE_S:
            self._sample()
            self._decide_by_memory()
            self._sampled_s += 4 * (self._now() - now)  # many processes take long to look at
        failed = [rank.ended_s for rank in self._ranks if rank.ended_s is not None and rank.exit_code]
        if not self._ending and failed and now - min(failed) >= _FAILURE_GRACE_S:
            self._ending = "failed"
        if not self._ending:
            self._decide_by_stacks(now)

    def _decide_by_memory(self) -> None:
        limit = self._spec.memory_bytes
        used = self._memory.used_bytes(self._seen, limit)
        if limit and used > limit:
            self._ending = "out_of_memory"
            self._reason = (
                f"All ranks together used {used / 2**20:,.0f} MiB; the limit is {limit / 2**20:,.0f} MiB."
            )

    def _decide_by_stacks(self, now: float) -> None:
        spec = self._spec
        silent_s = now - max(rank.last_moved_s for rank in self._ranks)
        if silent_s < spec.silence_s:
            self._look, self._looked_s = {}, -1e9
            return
        if now - self._looked_s < spec.stack_gap_s:
            return
        if not take_stacks([rank for rank in self._ranks if rank.alive], self._stacks_dir):
            self._looked_s = self._now()
            return
        self._sample()
        seen = look(self._ranks, self._owners, self._seen, spec.submission_dir)
        if stands_still(self._look, seen, spec.stack_gap_s):
            self._ending = "deadlocked"
            where = describe(seen, spec.submission_dir)
            self._reason = f"Nothing moved for {self._now() - now + silent_s:.0f} s: {where}."
        self._look, self._looked_s = seen, self._now()

    # -- the end -----------------------------------------------------------------------------------------------------

    def _stop(self) -> None:
        """Stacks, SIGTERM, SIGKILL; returns when the launcher has nothing left to run."""
        alive = [rank for rank in self._ranks if rank.alive]
        if self._ending in ("timed_out", "failed"):
            take_stacks(alive, self._stacks_dir)
        for rank in alive:
            rank.killed_by_judge = rank.alive
        if self._ending == "failed":
            self._ending = ""
        if self._ending != "out_of_memory":
            self._sample()
            send_all(self._without_helpers(), signal.SIGTERM)
            self._turn_until(lambda: self._launcher.over, _TERM_GRACE_S)
        deadline = self._now() + _KILL_GRACE_S
        while not self._launcher.over and self._now() < deadline:
            self._sample()
            send_all(self._without_helpers(), signal.SIGKILL)
            self._turn_until(lambda: self._launcher.over, 0.1)
        if not self._launcher.over and not any(rank.alive for rank in self._ranks):
            # Only the launcher's own process is left, slow to go on a busy machine; it has nothing more to tell.
            self._sample()
            send_all(
                {p: one for p, one in self._seen.items() if p in self._launcher.own_pids}, signal.SIGKILL
            )
            self._turn_until(lambda: self._launcher.over, _KILL_GRACE_S)
        if not self._launcher.over:
            raise OSError("a rank outlived SIGKILL: it hangs inside the kernel")

    def _without_helpers(self) -> dict[int, Usage]:
        return {pid: one for pid, one in self._seen.items() if pid not in self._launcher.own_pids}

    def _sweep(self) -> None:
        """Give what the ranks left running a moment to go by itself, then count and end it."""

        def remaining() -> list[int]:
            self._sample()
            return [pid for pid, one in self._without_helpers().items() if not one.zombie]

        if remaining():
            self._turn_until(lambda: not remaining(), _LEFTOVER_GRACE_S)
            for pid in remaining():
                self._ranks[self._owners.get(pid, 0)].leftovers += 1
        left = end_descendants(_KILL_GRACE_S, self._reap)
        if left:
            raise OSError(f"{left} processes of the run outlived SIGKILL")

    def _turn_until(self, done: Callable[[], bool], limit_s: float) -> None:
        deadline = self._now() + limit_s
        while not done() and self._now() < deadline:
            self._turn()

    # -- signs and records -------------------------------------------------------------------------------------------

    def _watch_signals(self) -> None:
        def interrupt(_signum: int, _frame: object) -> None:
            self._interrupted = True

        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, interrupt)
        signal.signal(signal.SIGCHLD, lambda _signum, _frame: None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})

    def _now(self) -> float:
        return time.monotonic() - self._origin

    def _tell(self, now: float) -> None:
        self._told_s = now
        self._say(
            {
                "event": "progress",
                "elapsed_s": round(now, 3),
                "steps": [rank.trace.num_steps for rank in self._ranks],
                "line": self._ranks[0].out.last_line(),
            }
        )


def supervise(spec: LaunchSpec, store_port: int, report: int) -> None:
    """Run a spec in this process, which was forked for it alone; JSON lines of progress go to descriptor `report`."""

    def say(event: dict[str, Any]) -> None:
        # A reader that went away is noticed by our parent; losing a sign of life is no reason to lose the run.
        with contextlib.suppress(OSError):
            os.write(report, (json.dumps(event) + "\n").encode())

    Supervisor(spec, store_port, say).run()
