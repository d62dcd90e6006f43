"""One host's worker: the process that starts the others, replaces those that die, and sees to it that all end.

Why not Celery's prefork pool, under one Celery worker: on a transport without an event loop, such as the folder's, its
children take tasks from one pipe under one lock, and one that is killed outright while it is idle takes the lock with
it, so that nothing runs any more. Here every process is a Celery worker of its own; they share nothing that one could
take with it. This process has one thread and imports what the others need before it forks them.

On SIGTERM they take nothing more and finish what they have; what is not finished after `grace_s` is given back, and
`SHUTDOWN_S` later everything is gone whatever happens. (Celery's warm shutdown has no such limit, and its soft shutdown
sleeps its whole time inside a signal handler, so that every deploy would take that long; here it takes as long as the
last attempt does.)
"""

from __future__ import annotations

import fcntl
import os
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO

import structlog

from grader.errors import EXIT_ACCEPTED, GraderError, InfraError, UsageError
from grader.launch.system.processes import die_with_parent
from grader.queue.celery import configuration
from grader.run.devices.allocation import read_allocation
from grader.run.host_devices import host_devices
from grader.settings.schema import Settings
from grader.store.queue.claims import needs_of
from grader.worker.attempts_folder import emptied
from grader.worker.context import WorkerContext
from grader.worker.coordinators import open_coordinator
from grader.worker.health import health_problems
from grader.worker.health_reporter import report_health
from grader.worker.shared_state import SharedState, ShutdownStage
from grader.worker.time_left import TimeLimits, fitting, read_time_limits
from grader.worker.worker_process import run_worker_process

SHUTDOWN_S = 25.0
"""For ending runs, scoring what has ended, and saying so."""
_QUICK_S = 10.0
"""A process that ends sooner is started again after a pause that grows."""
_LONGEST_PAUSE_S = 30.0
_BETWEEN_ATTEMPTS_S = 5.0
"""A process that has an attempt says so more often than this."""
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What a worker is to be: its name, its slots, what it takes, where its figures are told (0: nowhere).

    `grace_s`: how long attempts may go on once it is told to end; with `SHUTDOWN_S` it is to be under 90 s.
    `exit_when_idle_s`: it ends by itself once there was nothing to claim for so long; None: it stays.
    `until`: when it has to have finished, in seconds since 1970. It takes only what can be judged before, and ends by
    itself once nothing can.
    `server`: address of the service that it asks for attempts; "": the database.
    """

    name: str
    slots: int = 1
    cpu: bool = True
    gpus: bool = True
    metrics_port: int = 0
    grace_s: float = 55.0
    exit_when_idle_s: float | None = None
    until: float | None = None
    server: str = ""

    @property
    def polls(self) -> bool:
        """Whether it asks for attempts. Who leaves something to others would use up the message that was theirs."""
        return bool(self.server) or self.exit_when_idle_s is not None or self.until is not None


@dataclass
class _ChildProcess:
    name: str
    work: Callable[[], None]
    pid: int = 0
    started: float = 0.0
    pause_s: float = 0.0
    next_s: float = field(default=0.0)


class WorkerSupervisor:
    """Runs until it is told to end."""

    def __init__(self, options: WorkerOptions, settings: Settings) -> None:
        """Touches nothing yet.

        Raises:
            UsageError: there is nothing that this host could take, or the broker's address is none.
            StoreUnavailableError: tasks are to be chosen by their limits, and nobody tells these.
        """
        if not options.polls:
            configuration(settings.broker)
        self._limits: TimeLimits = ()
        if options.until is not None:
            coordinator = open_coordinator(settings, options.name, options.server)
            try:
                self._limits = read_time_limits(coordinator)
            finally:
                coordinator.close()
        self._options = options
        self._settings = settings
        self._shared = SharedState()
        devices = host_devices().inventory() if options.gpus else None
        if devices is not None and (allocation := read_allocation()) is not None:
            for problem in allocation.problems(devices, len(os.sched_getaffinity(0))):
                _log.warning("not held to its allocation", problem=problem)
        self._num_gpus = len(devices.gpus) if devices is not None else 0
        # Where there is neither, none will come while this runs.
        self._asks_driver = devices is not None and (self._num_gpus > 0 or devices.hangs)
        if not needs_of(self._num_gpus, cpu=options.cpu):
            if devices is not None and devices.hangs:
                raise InfraError(f"{devices.no_gpus}, and --no-cpu leaves nothing else to take")
            raise UsageError("this host has no devices, and --no-cpu leaves nothing else to take")
        self._shared.set_num_gpus(len(devices.offered) if devices is not None else 0)
        self._ending = False

    def run(self) -> int:
        """Work until SIGTERM, SIGINT or a drain; returns the exit code.

        Raises:
            UsageError: a worker of that name runs on this state folder already.
        """
        options, settings, shared = self._options, self._settings, self._shared
        folder = settings.local_root / "workers" / options.name
        lock = _lock(folder)
        attempts_folder = emptied(folder / "attempts")
        context = WorkerContext(
            options.name,
            attempts_folder,
            settings,
            shared,
            options.cpu,
            self._num_gpus,
            server=options.server,
            polls=options.polls,
            until=options.until,
            limits=self._limits,
        )
        children = [
            _ChildProcess(
                "health reporter",
                lambda: report_health(context, options.slots, options.metrics_port, gpus=self._asks_driver),
            ),
            *(
                _ChildProcess(f"worker process {number}", partial(run_worker_process, context, number))
                for number in range(1, options.slots + 1)
            ),
        ]
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)
        # Nothing is claimed before somebody has looked whether this host is well; in a process of its own, because
        # looking may start threads.
        os.waitpid(_fork(lambda: shared.set_out_of_service(bool(health_problems(settings)))), 0)
        try:
            while not self._ending and not self._has_served():
                self._start(children)
                self._collect_dead(children)
                time.sleep(0.1)
        finally:
            self._shut_down(children)
            _say_good_bye(context)
            lock.close()
        return EXIT_ACCEPTED

    def _has_served(self) -> bool:
        """Whether it was to stay for a while only, and that is over: nothing runs, and nothing more will be taken."""
        options, idle_s = self._options, self._shared.idle_s
        if options.exit_when_idle_s is not None and idle_s > options.exit_when_idle_s:
            _log.info("idle", idle_s=round(idle_s, 1))
            return True
        if (
            options.until is not None
            and idle_s > _BETWEEN_ATTEMPTS_S
            and not fitting(options.until - time.time(), self._limits)
        ):
            _log.info("no time left for another attempt")
            return True
        return False

    def _end(self, _number: int, _frame: object) -> None:
        self._ending = True
        self._shared.advance_to(ShutdownStage.DRAIN)

    def _start(self, children: list[_ChildProcess]) -> None:
        now = time.monotonic()
        for child in children:
            if not child.pid and now >= child.next_s:
                child.pid, child.started = _fork(child.work), now

    def _collect_dead(self, children: list[_ChildProcess]) -> None:
        for child in children:
            if not child.pid:
                continue
            pid, status = os.waitpid(child.pid, os.WNOHANG)
            if not pid:
                continue
            now = time.monotonic()
            code = os.waitstatus_to_exitcode(status)
            quick = now - child.started < _QUICK_S
            child.pause_s = min(_LONGEST_PAUSE_S, 2 * child.pause_s + 0.5) if quick else 0.0
            child.pid, child.next_s = 0, now + child.pause_s
            if code and not (self._ending and -code in (signal.SIGTERM, signal.SIGKILL)):
                # What it had in hand comes back when its lease ends.
                _log.error("process died", process=child.name, exit_code=code, again_in_s=child.pause_s)

    def _shut_down(self, children: list[_ChildProcess]) -> None:
        """See all end, the health reporter last: it says meanwhile that we are still there."""
        began = time.monotonic()
        self._shared.advance_to(ShutdownStage.DRAIN)
        workers, reporter = children[1:], children[:1]
        _signal(workers, signal.SIGTERM)
        requeued = False
        while any(child.pid for child in workers):
            self._collect_dead(workers)
            passed_s = time.monotonic() - began
            if passed_s > self._options.grace_s and not requeued:
                _log.warning("attempts are given back")
                self._shared.advance_to(ShutdownStage.REQUEUE)
                requeued = True
            if passed_s > self._options.grace_s + SHUTDOWN_S:
                _log.critical("worker processes are killed")
                _signal(workers, signal.SIGKILL)
            time.sleep(0.05)
        _signal(reporter, signal.SIGKILL)
        while any(child.pid for child in reporter):
            self._collect_dead([child for child in reporter if child.pid])
            time.sleep(0.01)


def _say_good_bye(context: WorkerContext) -> None:
    coordinator = open_coordinator(context.settings, context.worker, context.server)
    try:
        coordinator.forget_worker()
    except GraderError:
        _log.warning("the queue does not know yet that this worker has ended")
    finally:
        coordinator.close()


def _fork(work: Callable[[], None]) -> int:
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        # A killed supervisor ends its processes, too: in order, so that they finish what they have.
        die_with_parent(parent, signal.SIGTERM)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        work()
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    except BaseException:  # noqa: BLE001 - the last to hear of it
        traceback.print_exc()
    finally:
        os._exit(code)


def _signal(children: list[_ChildProcess], number: signal.Signals) -> None:
    for child in children:
        if child.pid:
            os.kill(child.pid, number)


def _lock(folder: Path) -> IO[bytes]:
    folder.mkdir(parents=True, exist_ok=True)
    file = (folder / "lock").open("wb")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise UsageError(
            f"a worker named {folder.name} runs here already: give this one another name, or the other more slots"
        ) from None
    return file
