"""One host's worker: the process that starts its slots, replaces those that die, and sees to it that all end.

It has one thread and imports what its slots need before it forks them. (Celery's own pool forks from a process with
threads, whose locks a child may inherit for ever; here every slot is a small Celery worker of its own instead.) On
SIGTERM slots take nothing more and finish what they have; what is not finished after the plan's `grace_s` is given
back, and `LAST_S` later everything is gone whatever happens. (Celery's soft shutdown sleeps its whole time inside a
signal handler, so that every deploy would take that long; here it takes as long as the last attempt does.)
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import structlog

from grader.errors import EXIT_ACCEPTED, UsageError
from grader.launch.processes import die_with_parent
from grader.queue.broker import make_app
from grader.run.devices.inventory import take_inventory
from grader.settings import Settings
from grader.store.claims import needs_of
from grader.store.database import Store, StoreUnavailableError
from grader.store.queue import forget_worker
from grader.worker.consumer import consume
from grader.worker.health import ailments
from grader.worker.keeper import keep
from grader.worker.orders import Order, Orders
from grader.worker.slot import Post

LAST_S = 25.0
"""For ending runs, scoring what has ended, and saying so."""
_QUICK_S = 10.0
"""A process that ends sooner is started again after a pause that grows."""
_LONGEST_PAUSE_S = 30.0
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a worker is to be: its name, its slots, what it takes, where its figures are told (0: nowhere).

    `grace_s`: how long attempts may go on once it is told to end; with `LAST_S` it is to be under 90 s.
    """

    name: str
    slots: int = 1
    cpu: bool = True
    gpus: bool = True
    metrics_port: int = 0
    grace_s: float = 55.0


@dataclass
class _Child:
    name: str
    work: Callable[[], None]
    pid: int = 0
    started: float = 0.0
    pause_s: float = 0.0
    next_s: float = field(default=0.0)


class Station:
    """Runs until it is told to end."""

    def __init__(self, plan: Plan, settings: Settings) -> None:
        """Touches nothing yet.

        Raises:
            UsageError: there is nothing that this host could take, or the broker's address is none.
        """
        make_app(settings.broker)
        self._plan = plan
        self._settings = settings
        self._orders = Orders()
        devices = take_inventory() if plan.gpus else None
        self._num_gpus = len(devices.gpus) if devices is not None else 0
        if not needs_of(self._num_gpus, cpu=plan.cpu):
            raise UsageError("this host has no devices, and --no-cpu leaves nothing else to take")
        self._orders.offer(len(devices.offered) if devices is not None else 0)
        self._ending = False

    def run(self) -> int:
        """Work until SIGTERM, SIGINT or a drain; returns the exit code.

        Raises:
            UsageError: a worker of that name runs on this state folder already.
        """
        plan, settings, orders = self._plan, self._settings, self._orders
        folder = settings.state_dir / "workers" / plan.name
        lock = _lock(folder)
        place = _emptied(folder / "attempts")
        post = Post(plan.name, place, settings, orders, plan.cpu, self._num_gpus)
        children = [
            _Child("keeper", lambda: keep(post, plan.slots, plan.metrics_port, gpus=plan.gpus)),
            *(_Child(f"slot {number}", lambda: consume(post)) for number in range(plan.slots)),
        ]
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)
        # Nothing is claimed before somebody has looked whether this host is well; in a process of its own, because
        # looking may start threads.
        os.waitpid(_fork(lambda: orders.hold(bool(ailments(settings)))), 0)
        try:
            while not self._ending:
                self._start(children)
                self._bury(children)
                time.sleep(0.1)
        finally:
            self._finish(children)
            lock.close()
        return EXIT_ACCEPTED

    def _end(self, _number: int, _frame: object) -> None:
        self._ending = True
        self._orders.give(Order.FINISH)

    def _start(self, children: list[_Child]) -> None:
        now = time.monotonic()
        for child in children:
            if not child.pid and now >= child.next_s:
                child.pid, child.started = _fork(child.work), now

    def _bury(self, children: list[_Child]) -> None:
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

    def _finish(self, children: list[_Child]) -> None:
        """See all slots end, the keeper last: it says meanwhile that we are still there."""
        began = time.monotonic()
        self._orders.give(Order.FINISH)
        slots, keeper = children[1:], children[:1]
        _signal(slots, signal.SIGTERM)
        told = False
        while any(child.pid for child in slots):
            self._bury(slots)
            passed_s = time.monotonic() - began
            if passed_s > self._plan.grace_s and not told:
                _log.warning("attempts are given back")
                self._orders.give(Order.GIVE_BACK)
                told = True
            if passed_s > self._plan.grace_s + LAST_S:
                _log.critical("slots are killed")
                _signal(slots, signal.SIGKILL)
            time.sleep(0.05)
        _signal(keeper, signal.SIGKILL)
        while any(child.pid for child in keeper):
            self._bury([child for child in keeper if child.pid])
            time.sleep(0.01)
        store = Store(self._settings.database)
        try:
            forget_worker(store, self._plan.name)
        except StoreUnavailableError:
            _log.warning("the database does not know yet that this worker has ended")
        finally:
            store.close()


def _fork(work: Callable[[], None]) -> int:
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        # A killed station ends its slots, too: in order, so that they finish what they have.
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


def _signal(children: list[_Child], number: signal.Signals) -> None:
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


def _emptied(folder: Path) -> Path:
    """What a killed worker of this name left lying there is nobody's."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
