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

from grader.launch.bounds import kill_s, other_nodes_s
from grader.launch.coordinator_orders import CoordinatorOrders
from grader.launch.endings.deadlock import StandstillWatch
from grader.launch.endings.ending import end_descendants, judge_ending, stop_ranks, sweep
from grader.launch.launchers.registry import launcher_of
from grader.launch.progress import progress_event
from grader.launch.ranks.environment import prepare_folders
from grader.launch.ranks.rank_process import RankProcess, take_stacks
from grader.launch.ranks.seal_key import SealKey
from grader.launch.ranks.streams import write_all
from grader.launch.ranks.user import as_user
from grader.launch.record import write_run
from grader.launch.spec import LaunchSpec
from grader.launch.system.cpu import CpuWatch
from grader.launch.system.machine import environment_facts
from grader.launch.system.memory import MemoryWatch
from grader.launch.system.preflight import UnfitDevicesError, look_at_devices
from grader.launch.system.process_tree import ProcessTree
from grader.launch.system.processes import adopt_orphans
from grader.launch.system.traffic import TrafficWatch

_TICK_S = 0.04
_BUSY_TICK_S = 0.004
_SAMPLE_S = 0.4
_PROGRESS_S = 0.5
_FAILURE_GRACE_S = 3.0
_INTERRUPTED = ("interrupted", "The judge stopped the run.")


class Supervisor:
    """Runs one spec, or one node's part of it.

    Ranks meet at the store on `store_port`; `report` takes events; `orders` come where other nodes take part.
    """

    def __init__(
        self,
        spec: LaunchSpec,
        store_port: int,
        report: Callable[[dict[str, Any]], None],
        orders: CoordinatorOrders | None,
    ) -> None:
        self._spec = spec
        self._report = report
        self._orders = orders
        self._stacks_dir = Path(spec.record_dir, "stacks")
        for folder in ("trace", "logs", "stacks"):
            Path(spec.record_dir, folder).mkdir(parents=True, exist_ok=True)
        self._ranks = [RankProcess(spec, rank) for rank in spec.ranks]
        self._key = SealKey.draw() if spec.sealed and spec.probe else SealKey.none()
        self._launcher = launcher_of(spec, self._ranks, store_port, self._key)
        self._memory = MemoryWatch(contained=spec.contained)
        self._origin = 0.0
        self._interrupted = False
        self._ending = ""
        self._reason = ""
        self._failed_s: float | None = None
        """When the first rank failed, on whichever node."""
        self._tree = ProcessTree(self._ranks)
        self._standstill = StandstillWatch(spec, self._ranks, self._tree, self._now)
        self._sampled_s = self._reported_s = -1e9
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
        own_network = spec.contained or spec.own_network
        try:
            if spec.gpus:
                self._report(
                    {"event": "devices", "devices": look_at_devices(spec, lambda: self._interrupted)}
                )
            self._launcher.prepare()
            # What was imported until here is nobody's time.
            traffic = TrafficWatch(spec.interface, contained=own_network)
            self._cpu = CpuWatch(whole_group=spec.contained and spec.launcher != "torchrun")
            self._origin = self._start()
            facts["started_unix_s"] = round(time.time(), 3)
            self._launcher.start(self._origin)
            while not self._launcher.over:
                self._turn()
                self._decide()
                if self._ending:
                    self._stop()
                    break
            ends_s = (self._launcher.ended_s, *(rank.ended_s or 0.0 for rank in self._ranks))
            wall_s = max(ends_s) or self._now()
            sweep(spec, self._launcher, self._ranks, self._tree, self._turn_until, self._reap)
        finally:
            end_descendants(kill_s(len(spec.gpus)), uid=spec.rank_uid)
        for rank in self._ranks:
            rank.close(self._now())
        self._launcher.close(self._now())
        self._report_progress(self._now())
        self._cpu.settle(self._ranks)
        for rank in self._ranks:
            if trouble := rank.trouble():
                raise OSError(f"rank {rank.rank} could not be set up: {trouble}")
        ending, reason = self._ending, self._reason
        if self._interrupted:
            # A batch system that ends a job tells all its processes at once: ranks may be gone before we hear of it.
            ending, reason = _INTERRUPTED
        elif not ending:
            ending, reason = judge_ending(
                spec,
                self._ranks,
                self._launcher.complaint,
                kernel_killed=self._memory.kernel_killed,
                contained=self._memory.contained,
            )
        if spec.contained:
            facts["memory_peak_bytes"] = self._memory.peak_bytes
        write_run(spec, self._ranks, (ending, reason), wall_s, facts, traffic.moved_bytes(), self._key)

    # -- the loop ----------------------------------------------------------------------------------------------------

    def _turn(self) -> None:
        """Sleep until something happens or a tick is over, take what came, bury who ended."""
        poller = select.poll()
        inputs = (self._orders.descriptor,) if self._orders is not None else ()
        for descriptor in (self._wakeup, *inputs, *self._launcher.descriptors):
            poller.register(descriptor, select.POLLIN)
        poller.poll((_BUSY_TICK_S if self._busy else _TICK_S) * 1000)
        with contextlib.suppress(BlockingIOError):
            os.read(self._wakeup, 4096)
        if self._orders is not None:
            self._orders.take()
        before = sum(rank.out.num_bytes + rank.err.num_bytes + rank.trace.num_bytes for rank in self._ranks)
        now = self._now()
        for rank in self._ranks:
            rank.drain(now)
        after = sum(rank.out.num_bytes + rank.err.num_bytes + rank.trace.num_bytes for rank in self._ranks)
        # A writer that fills its pipe within a tick is served sooner, so that it need not wait for us.
        self._busy = after - before > 1 << 18
        self._launcher.serve(now, self._tree.owners)
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
            owner = self._tree.owners.pop(pid, None)
            if owner is not None:
                owner.cpu_user_s += used.ru_utime
                owner.cpu_system_s += used.ru_stime
            else:
                self._cpu.orphans_s += used.ru_utime + used.ru_stime

    def _decide(self) -> None:
        """End the run where there is a reason to; the gravest first."""
        now = self._now()
        if now - self._reported_s >= _PROGRESS_S:
            self._report_progress(now)
        if self._interrupted:
            self._ending, self._reason = _INTERRUPTED
        elif now >= self._spec.wall_s:
            self._ending = "timed_out"
            self._reason = f"The run was still going at its limit of {self._spec.wall_s:g} s."
        elif now - self._sampled_s >= _SAMPLE_S:
            self._tree.refresh()
            self._decide_by_memory()
            self._sampled_s = now + 4 * (self._now() - now)  # many processes take long to look at
        failed = [rank.ended_s for rank in self._ranks if rank.ended_s is not None and rank.exit_code]
        if failed and self._failed_s is None:
            self._failed_s = min(failed)
            self._report({"event": "rank_failed"})
        if not self._ending and self._failed_s is not None and now - self._failed_s >= _FAILURE_GRACE_S:
            self._ending = "failed"
        if not self._ending:
            self._decide_by_stacks()
        if self._orders is not None:
            self._follow_orders(self._orders)

    def _decide_by_memory(self) -> None:
        limit = self._spec.memory_bytes
        used = self._memory.used_bytes(self._tree.processes, limit)
        if limit and used > limit:
            self._ending = "out_of_memory"
            whose = "All ranks" if self._spec.nnodes == 1 else f"The ranks of node {self._spec.node_rank}"
            self._reason = (
                f"{whose} together used {used / 2**20:,.0f} MiB; the limit is {limit / 2**20:,.0f} MiB."
            )

    def _decide_by_stacks(self) -> None:
        watch = self._standstill
        if not watch.turn():
            return
        if self._orders is not None:
            self._report(watch.report())
        elif watch.stood_s:
            self._ending = "deadlocked"
            self._reason = f"Nothing moved for {watch.silent_s:.0f} s: {watch.where}. {watch.told}".rstrip()

    def _follow_orders(self, orders: CoordinatorOrders) -> None:
        """Act on what the grader says of the other nodes, and let it know what happened here."""
        if orders.failed_elsewhere and self._failed_s is None:
            self._failed_s = self._now()
        if orders.end is not None and not self._ending:
            self._ending, self._reason = orders.end
        elif self._ending and self._ending != "failed":
            self._report({"event": "ending", "ending": self._ending, "reason": self._reason})

    # -- the end -----------------------------------------------------------------------------------------------------

    def _stop(self) -> None:
        """End the ranks that still run, for the reason that was decided."""
        if self._ending in ("timed_out", "failed"):
            take_stacks([rank for rank in self._ranks if rank.alive], self._stacks_dir)
        if self._ending == "failed":
            self._ending = ""
        gently = self._ending != "out_of_memory"
        stop_ranks(self._spec, self._launcher, self._ranks, self._tree, self._turn_until, gently=gently)

    def _turn_until(self, done: Callable[[], bool], limit_s: float) -> None:
        deadline = self._now() + limit_s
        while not done() and self._now() < deadline:
            self._turn()

    # -- signs and records -------------------------------------------------------------------------------------------

    def _start(self) -> float:
        """Time zero on the monotonic clock; with several nodes the moment that was agreed with the others."""
        if self._orders is None:
            return time.monotonic()
        self._report({"event": "prepared", "clock_s": time.monotonic()})
        return self._orders.wait_for_start(other_nodes_s(len(self._spec.gpus)))

    def _watch_signals(self) -> None:
        def interrupt(_signum: int, _frame: object) -> None:
            self._interrupted = True

        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, interrupt)
        signal.signal(signal.SIGCHLD, lambda _signum, _frame: None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})

    def _now(self) -> float:
        return time.monotonic() - self._origin

    def _report_progress(self, now: float) -> None:
        self._reported_s = now
        self._report(progress_event(self._ranks, now))


def supervise(spec: LaunchSpec, store_port: int, events: int, orders: int | None = None) -> None:
    """Run a spec in this process, which was forked for it alone.

    Args:
        spec: the run; store_port: where its store listens on this node.
        events, orders: descriptors that JSON lines go to and, where there are other nodes, come from.
    """

    def send(event: dict[str, Any]) -> None:
        # A reader that went away is noticed by our parent; losing a sign of life is no reason to lose the run.
        with contextlib.suppress(OSError):
            # Whole lines only: a signal may interrupt a write that fills the pipe.
            write_all(events, (json.dumps(event) + "\n").encode())

    try:
        Supervisor(spec, store_port, send, CoordinatorOrders(orders) if orders is not None else None).run()
    except UnfitDevicesError as error:
        send({"event": "unfit_devices", "gpus": error.gpus, "reason": str(error)})
        raise
