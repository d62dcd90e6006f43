"""The heartbeat of one attempt: keeps its lease, publishes its live events, and hears when it is to end.

A thread of its own, so that it beats while the process waits for a run. It never ends a run itself: the next sign of
progress (twice a second while ranks run) raises `AttemptAborted` where the attempt is executed, which makes the runtime
end everything that it started before the exception passes on. Where that no longer works, the whole process is killed,
and what it started dies with it.
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
from grader.store.database import StoreUnavailableError
from grader.store.queue.claims import Claimed, HeartbeatAnswer
from grader.worker.coordinator import Coordinator
from grader.worker.live_events import LiveEvents
from grader.worker.shared_state import SharedState, ShutdownStage

CHECK_S = 1.0
SOFT_S, HARD_S = 120.0, 240.0
"""Seconds over a run's own limit without getting on: after the first the attempt is aborted, after the second the
process is killed. A run's own limit is held by its supervisor; this is for supervisors, engines and disks that hang."""
_log = structlog.get_logger(__name__)


class AbortReason(StrEnum):
    """Why an attempt is to end before it is judged."""

    CANCELLED = "cancelled"
    STALE = "stale"
    """It is somebody else's by now."""
    REQUEUE = "give back"
    OVERDUE = "overdue"


class AttemptAborted(BaseException):
    """The attempt is to end now; like KeyboardInterrupt no handler of errors stops it."""

    def __init__(self, reason: AbortReason) -> None:
        super().__init__(reason.value)
        self.reason = reason


class Heartbeat:
    """Beats from entering to leaving."""

    def __init__(
        self,
        coordinator: Coordinator,
        claimed: Claimed,
        live: LiveEvents,
        shared: SharedState,
        lease_s: float,
    ) -> None:
        self._coordinator = coordinator
        self._claimed = claimed
        self._live = live
        self._shared = shared
        self._lease_s = lease_s
        self._over = threading.Event()
        self._reason: AbortReason | None = None
        # What is logged there bears the attempt's id, too.
        here = contextvars.copy_context()
        self._thread = threading.Thread(
            target=here.run, args=(self._run,), name="grader-heartbeat", daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def on_progress(self, progress: Progress) -> None:
        """For the pipeline: hears how the run gets on, and ends it where that is asked for."""
        self.raise_if_aborted()
        self._live.on_progress(progress)

    def raise_if_aborted(self) -> None:
        """Raises AttemptAborted where the attempt is to end."""
        if self._reason is not None:
            raise AttemptAborted(self._reason)

    def flush(self) -> None:
        """Publish what is left, while the attempt is still ours."""
        self._publish_events()

    def _run(self) -> None:
        last_beat = last_look = time.monotonic()
        while not self._over.wait(min(CHECK_S, self._lease_s / 6)):
            try:
                self._shared.note_busy()
                now = time.monotonic()
                self._check(now)
                if now - last_beat >= self._lease_s / 3:
                    self._heed(self._coordinator.heartbeat(self._claimed, self._live.phase))
                    last_beat = now
                elif now - last_look >= self._coordinator.look_s:
                    # A cancel is to be felt at once.
                    self._heed(self._coordinator.look(self._claimed))
                    last_look = now
                self._publish_events()
            except StoreUnavailableError as error:
                # The lease may outlive it; whether it did is asked when the attempt ends.
                _log.warning("nobody answers", reason=str(error))
            except Exception:  # noqa: BLE001 - logged; nothing here ends its process
                _log.exception("a heartbeat failed")

    def _heed(self, answer: HeartbeatAnswer) -> None:
        if answer is not HeartbeatAnswer.KEPT:
            self._abort(AbortReason.CANCELLED if answer is HeartbeatAnswer.CANCEL else AbortReason.STALE)

    def _check(self, now: float) -> None:
        """What is known here, whoever answers elsewhere."""
        if self._shared.stage is ShutdownStage.REQUEUE:
            self._abort(AbortReason.REQUEUE)
        late_s = now - self._live.since - self._live.wall_s
        if late_s > HARD_S:
            _log.critical("the process hangs and is killed", phase=self._live.phase)
            os.kill(os.getpid(), signal.SIGKILL)
        elif late_s > SOFT_S:
            self._abort(AbortReason.OVERDUE)

    def _publish_events(self) -> None:
        taken = self._live.take()
        if not taken:
            return
        try:
            self._coordinator.add_events(self._claimed, taken)
        except StoreUnavailableError:
            self._live.put_back(taken)
            raise

    def _abort(self, reason: AbortReason) -> None:
        if self._reason is None:
            self._reason = reason
            _log.info("attempt is to end", why=reason.value)
