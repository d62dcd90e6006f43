"""From the outbox to the broker, and the reconciler's turn every few seconds. Any number of relays may run.

A broker or database that is away is waited for: submissions are taken meanwhile, their messages stay where they are.
Judges nothing and ends nothing.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import structlog
from celery import Celery

from grader.queue.publisher import BrokerUnavailableError, TaskPublisher
from grader.store.database import Store, StoreUnavailableError
from grader.store.queue import outbox, reconciler
from grader.store.queue.outbox import OutboxMessage
from grader.store.queue.queue_overview import waiting_counts

POLL_S = 0.25
RECONCILE_S = 10.0
_AWAY_S = 1.0
_log = structlog.get_logger(__name__)


class Relay:
    """Publishes and reconciles until it is told to stop."""

    def __init__(
        self,
        store: Store,
        app: Celery,
        *,
        reconcile_s: float = RECONCILE_S,
        pulse_file: Path | None = None,
        chores: Sequence[Callable[[], None]] = (),
    ) -> None:
        """Of a relay.

        Args:
            store, app: the database and the broker.
            reconcile_s: seconds between two turns of the reconciler; a message counts as lost after as many.
            pulse_file: touched after every turn that did what it should, for whoever looks after processes.
            chores: what else is done once after each turn of the reconciler; each is short.
        """
        self._store = store
        self._app = app
        self._reconcile_s = reconcile_s
        self._pulse_file = pulse_file
        self._chores = chores
        self._publisher: TaskPublisher | None = None
        self._waiting: dict[tuple[str, str], int] | None = None
        self._next_s = 0.0
        self._trouble = ""

    def run(self, over: threading.Event) -> None:
        """Work until the event is set."""
        try:
            while not over.is_set():
                done = self.turn()
                if done and self._pulse_file is not None:
                    # One that cannot be touched grows old, too.
                    with contextlib.suppress(OSError):
                        self._pulse_file.touch()
                over.wait(POLL_S if done else _AWAY_S)
        finally:
            self._disconnect()

    def turn(self) -> bool:
        """Send what waits, and reconcile where it is time; False: something was away."""
        try:
            self._waiting = None
            while outbox.publish(self._store, self._send):
                self._waiting = None
            self._log_trouble("")
            sent = True
        except (BrokerUnavailableError, StoreUnavailableError) as error:
            self._disconnect()
            self._log_trouble(str(error))
            sent = False
        except Exception:  # noqa: BLE001 - logged; nothing here ends its process
            self._disconnect()
            _log.exception("messages could not be sent")
            sent = False
        return self._reconcile() and sent

    def _send(self, message: OutboxMessage) -> None:
        if message.topic != "attempt":
            # The people who run the course see it in their pages; those who run the service see it here.
            _log.error("judge_error", attempt=message.attempt_id, need=message.need, lane=message.lane)
            return
        if self._publisher is None:
            self._publisher = TaskPublisher(self._app)
        if self._waiting is None:
            self._waiting = {(one.need, one.lane.value): one.number for one in waiting_counts(self._store)}
        self._publisher.publish(
            message.attempt_id,
            message.need,
            message.lane,
            num_attempts=self._waiting.get((message.need, message.lane), 0),
        )

    def _reconcile(self) -> bool:
        # By the clock that never jumps: what is late is then decided by the database's.
        if time.monotonic() < self._next_s:
            return True
        self._next_s = time.monotonic() + self._reconcile_s
        try:
            done = reconciler.reconcile(self._store, stale_s=self._reconcile_s)
            for chore in self._chores:
                chore()
        except StoreUnavailableError as error:
            self._log_trouble(str(error))
            return False
        except Exception:  # noqa: BLE001 - logged; nothing here ends its process
            _log.exception("reconciling failed")
            return False
        if done.requeued or done.failed or done.cancelled:
            _log.warning("reconciled", requeued=done.requeued, failed=done.failed, cancelled=done.cancelled)
        return True

    def _log_trouble(self, trouble: str) -> None:
        """Say once what is away, and once that it is back."""
        if trouble and not self._trouble:
            _log.warning("waiting", reason=trouble)
        elif self._trouble and not trouble:
            _log.info("back to work")
        self._trouble = trouble

    def _disconnect(self) -> None:
        publisher, self._publisher = self._publisher, None
        if publisher is not None:
            publisher.__exit__(None, None, None)
