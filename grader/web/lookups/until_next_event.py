"""What a course is at the moment, worked out once for all who look at it, until something happens.

Whatever changes a course is an event: a hand-in, a verdict, a decision, a date, a learner who comes. So an answer
stands while there is no newer event but what runs tell while they go on. Of two transactions that end at once the one
with the later number may be seen first, and a name may change without one: so no answer is kept for long. Of many who
ask one works it out, the others wait.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec, TypeVar

from grader.store.database import Store
from grader.store.events import newest_events

P = ParamSpec("P")
A = TypeVar("A")
FRESH_S = 5.0
_MOST = 128


@dataclass(slots=True)
class _Kept:
    turn: threading.Lock = field(default_factory=threading.Lock)
    answer: Any = None
    event: int = -1
    until: float = 0.0


class UntilNextEvent:
    """Answers to the questions that were asked last; safe for threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        # The last event that was seen, and the last of those that changed anything.
        self._seen = self._changed = 0

    def of(self, ask: Callable[Concatenate[Store, P], A], *args: P.args, **named: P.kwargs) -> A:
        """What this function says of the store now: the same object where nothing has happened.

        It depends on nothing else, and what it is given can be compared.
        """
        kept = self._of((ask, args, *sorted(named.items())))
        with kept.turn:
            # Asked first: what happens while the answer is worked out is in the next one at least.
            event = self._last_change()
            if event != kept.event or time.monotonic() > kept.until:
                kept.answer = ask(self._store, *args, **named)
                kept.event, kept.until = event, time.monotonic() + FRESH_S
            answer: A = kept.answer
            return answer

    def _last_change(self) -> int:
        after = self._seen
        newest, changed = newest_events(self._store, after)
        with self._lock:
            if newest < after:
                # Events went with what was erased, and their numbers are given again.
                self._seen = self._changed = newest
            else:
                self._seen, self._changed = max(self._seen, newest), max(self._changed, changed)
            return self._changed

    def _of(self, question: Hashable) -> _Kept:
        with self._lock:
            kept = self._kept.setdefault(question, _Kept())
            self._kept.move_to_end(question)
            while len(self._kept) > _MOST:
                self._kept.popitem(last=False)
            return kept
