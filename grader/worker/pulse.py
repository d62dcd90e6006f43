"""The heartbeat of one attempt: keeps its lease, tells what is live, and hears when it is to end.

A thread of its own, so that it beats while the slot waits for a run. It never ends a run itself: the next sign of
progress (twice a second while ranks run) raises `Stopped` in the slot, which makes the runtime end everything that it
started before the exception passes on. Where that no longer works, the slot's process is killed, and what it started
dies with it.
"""

from __future__ import annotations

import contextvars
import os
import signal
import threading
import time
from enum import StrEnum
from types import TracebackType
from typing import Self

import structlog

from grader.run.runtime import Progress
from grader.store import attempts, claims, events
from grader.store.claims import Claimed, Sign
from grader.store.database import Store, StoreUnavailableError
from grader.worker.live import Live
from grader.worker.orders import Order, Orders

LOOK_S = 1.0
SOFT_S, HARD_S = 120.0, 240.0
"""Seconds over a run's own limit without getting on: after the first the slot is told to end it, after the second it is
killed. A run's own limit is held by its supervisor; this is for supervisors, engines and disks that hang."""
_log = structlog.get_logger(__name__)


class Why(StrEnum):
    """Why an attempt is to end before it is judged."""

    CANCELLED = "cancelled"
    STALE = "stale"
    """It is somebody else's by now."""
    GIVE_BACK = "give back"
    OVERDUE = "overdue"


class Stopped(BaseException):
    """The attempt is to end now; like KeyboardInterrupt no handler of errors stops it."""

    def __init__(self, why: Why) -> None:
        super().__init__(why.value)
        self.why = why


class Pulse:
    """Beats from entering to leaving."""

    def __init__(self, store: Store, claimed: Claimed, live: Live, orders: Orders, lease_s: float) -> None:
        self._store = store
        self._claimed = claimed
        self._live = live
        self._orders = orders
        self._lease_s = lease_s
        self._over = threading.Event()
        self._why: Why | None = None
        # What is logged there bears the attempt's id, too.
        here = contextvars.copy_context()
        self._thread = threading.Thread(target=here.run, args=(self._run,), name="grader-pulse", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def progress(self, sign: Progress) -> None:
        """For the pipeline: hears a sign of life, and ends the run where that is asked for."""
        self.check()
        self._live.progress(sign)

    def check(self) -> None:
        """Raises Stopped where the attempt is to end."""
        if self._why is not None:
            raise Stopped(self._why)

    def flush(self) -> None:
        """Tell what is left to tell, while the attempt is still ours."""
        self._tell()

    def _run(self) -> None:
        beat = time.monotonic()
        while not self._over.wait(min(LOOK_S, self._lease_s / 6)):
            try:
                now = time.monotonic()
                if now - beat >= self._lease_s / 3:
                    self._beat()
                    beat = now
                self._look(now)
                self._tell()
            except StoreUnavailableError as error:
                # The lease may outlive it; whether it did is asked when the attempt ends.
                _log.warning("database away", reason=str(error))
            except Exception:  # noqa: BLE001 - logged; nothing here ends its process
                _log.exception("a heartbeat failed")

    def _beat(self) -> None:
        claimed = self._claimed
        sign = claims.heartbeat(
            self._store,
            claimed.attempt_id,
            claimed.lease_token,
            phase=self._live.phase or None,
            lease_s=self._lease_s,
        )
        if sign is not Sign.KEPT:
            self._end(Why.CANCELLED if sign is Sign.CANCEL else Why.STALE)

    def _look(self, now: float) -> None:
        """What a heartbeat would say only later: a cancel is to be felt at once."""
        if self._orders.order is Order.GIVE_BACK:
            self._end(Why.GIVE_BACK)
        late_s = now - self._live.since - self._live.wall_s
        if late_s > HARD_S:
            _log.critical("the slot hangs and is killed", phase=self._live.phase)
            os.kill(os.getpid(), signal.SIGKILL)
        elif late_s > SOFT_S:
            self._end(Why.OVERDUE)
        facts = attempts.attempt(self._store, self._claimed.attempt_id)
        if facts is None:
            self._end(Why.STALE)
        elif facts.cancel_requested_at is not None:
            self._end(Why.CANCELLED)

    def _tell(self) -> None:
        told = self._live.take()
        if not told:
            return
        try:
            events.tell(self._store, self._claimed.attempt_id, self._claimed.lease_token, told)
        except StoreUnavailableError:
            self._live.put_back(told)
            raise

    def _end(self, why: Why) -> None:
        if self._why is None:
            self._why = why
            _log.info("attempt is to end", why=why.value)
