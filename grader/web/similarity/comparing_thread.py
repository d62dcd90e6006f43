"""Compares classes in the background, as soon as something was handed in: pages then only read what is kept.

A thread of the relay's process; comparing itself happens in a process of its own, one class at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import structlog

from grader.errors import GraderError
from grader.store.attempts.similar_pairs import stale_tasks
from grader.store.courses.courses import AssignedTask, course_task
from grader.store.database import Store

POLL_S = 15.0
LEAST_S = 60.0
"""Between two comparisons of one class."""
_log = structlog.get_logger(__name__)


class ComparingThread:
    """Looks around every few seconds for classes in which something is new."""

    def __init__(
        self, store: Store, compare: Callable[[AssignedTask], None], *, least_s: float = LEAST_S
    ) -> None:
        """Of a thread.

        Args:
            store: where the classes are.
            compare: compares one and keeps what it found; see `grader.web.staff.class_similarity`.
            least_s: seconds between two comparisons of one class.
        """
        self._store = store
        self._compare = compare
        self._least_s = least_s
        # What failed is not tried again before something else comes in.
        self._failed: dict[int, int] = {}

    def run(self, over: threading.Event) -> None:
        """Work until the event is set."""
        while not over.wait(POLL_S):
            try:
                self.turn(over)
            except Exception:  # noqa: BLE001 - logged; nothing here ends the relay
                _log.exception("classes could not be compared")

    def turn(self, over: threading.Event) -> int:
        """Compare every class that has something new, until the event is set; returns how many."""
        number = 0
        for course_task_id, newest in stale_tasks(self._store, least_s=self._least_s):
            if over.is_set() or self._failed.get(course_task_id) == newest:
                continue
            task = course_task(self._store, course_task_id)
            if task is None:
                continue
            try:
                self._compare(task)
                number += 1
            except GraderError as error:
                self._failed[course_task_id] = newest
                _log.warning("a class could not be compared", course_task=course_task_id, reason=str(error))
        return number
