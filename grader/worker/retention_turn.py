"""The relay's part in retention: a batch of what is due at each of its turns, and a look around every few minutes."""

from __future__ import annotations

import time

import structlog

from grader.store.attempts.retention import RetentionRule, delete_due
from grader.store.database import Store
from grader.store.files import FileStore

LOOK_S = 600.0
_log = structlog.get_logger(__name__)


class RetentionTurn:
    """Deletes what the rules say, a bounded batch at a call, so that nothing else of the relay waits for it."""

    def __init__(self, store: Store, files: FileStore, site: RetentionRule) -> None:
        self._store = store
        self._files = files
        self._site = site
        self._next_s = 0.0

    def __call__(self) -> None:
        """Delete a batch; where nothing was due, the next look is in `LOOK_S` seconds.

        Raises:
            InfraError: the database or the file store is away; nothing is lost, and the next turn goes on.
        """
        if time.monotonic() < self._next_s:
            return
        number = delete_due(self._store, self._files, self._site)
        if number:
            _log.info("deleted by retention rules", attempts=number)
        else:
            self._next_s = time.monotonic() + LOOK_S
