"""Places in the queue, asked of the database once a second however many pages want them."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from grader.store.database import Store
from grader.store.queue.queue import QueuePlace, places

FRESH_S = 1.0


class QueuePositions:
    """The last answer; safe for threads, of which one asks while the others take what is there."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._known: Mapping[int, QueuePlace] = {}
        self._until = 0.0

    def current(self) -> Mapping[int, QueuePlace]:
        """Every waiting attempt's place, at most a second old; what came since then is not in it."""
        if time.monotonic() < self._until or not self._lock.acquire(blocking=not self._until):
            return self._known
        try:
            self._known = places(self._store)
            self._until = time.monotonic() + FRESH_S
        finally:
            self._lock.release()
        return self._known
