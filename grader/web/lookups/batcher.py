"""Questions to the database that come at the same moment are asked together: who shows a token, who hands in.

A transaction costs as much as all that is done in it. So whoever comes while one is under way is served by the next,
with all others who came meanwhile: alone nobody waits, and fifty learners who hand in at once share a few transactions
instead of standing in line for one each. Nobody gets an answer before the transaction has ended, and what goes wrong
over one question is answered to nobody else. Knows neither questions nor answers.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

from grader.store.database import StoreUnavailableError

Q = TypeVar("Q")
A = TypeVar("A")
MOST = 64
"""Questions that are asked at once: beyond that each becomes no cheaper, and others want to write, too."""


@dataclass(frozen=True, slots=True, eq=False)
class _Asked(Generic[Q, A]):
    question: Q
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[A]


class Batcher(Generic[Q, A]):
    """Asks in a thread of its own, in the order of coming; may be used from several event loops.

    Args:
        ask_all: answers several questions, in their order; raises where it did nothing for any of them.
        name: what the thread is called.
        apart: what no two questions that are asked together may share; each may be asked with each by default.
    """

    def __init__(
        self, ask_all: Callable[[list[Q]], Sequence[A]], *, name: str, apart: Callable[[Q], Hashable] = id
    ) -> None:
        self._ask_all = ask_all
        self._apart = apart
        self._lock = threading.Lock()
        self._waiting: deque[_Asked[Q, A]] = deque()
        self._busy = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)

    async def ask(self, question: Q) -> A:
        """The answer to this question, or whatever was raised over it."""
        loop = asyncio.get_running_loop()
        asked: _Asked[Q, A] = _Asked(question, loop, loop.create_future())
        with self._lock:
            self._waiting.append(asked)
        # Begun when all who are about to ask in this turn of the loop have done so.
        loop.call_soon(self._begin)
        return await asked.answer

    def _begin(self) -> None:
        with self._lock:
            if self._busy or not self._waiting:
                return
            self._busy = True
        self._thread.submit(self._work)

    def _work(self) -> None:
        while batch := self._next():
            answers = self._answers([asked.question for asked in batch])
            answered: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[A], A | BaseException]]] = {}
            for asked, answer in zip(batch, answers, strict=True):
                answered.setdefault(asked.loop, []).append((asked.answer, answer))
            for loop, its in answered.items():
                try:
                    loop.call_soon_threadsafe(_deliver, its)
                except RuntimeError:
                    # That loop has ended, and with it whoever waited there.
                    continue

    def _next(self) -> list[_Asked[Q, A]]:
        """Those who are served now; none: the thread is done."""
        batch: dict[Hashable, _Asked[Q, A]] = {}
        with self._lock:
            later: list[_Asked[Q, A]] = []
            while self._waiting and len(batch) < MOST:
                asked = self._waiting.popleft()
                if batch.setdefault(self._apart(asked.question), asked) is not asked:
                    later.append(asked)
            self._waiting.extendleft(reversed(later))
            self._busy = bool(batch)
        return list(batch.values())

    def _answers(self, questions: list[Q]) -> list[A | BaseException]:
        try:
            return list(self._ask_all(questions))
        except StoreUnavailableError as error:
            # It would be away for each of them, and each would wait for it as long as all of them did.
            return [error] * len(questions)
        except BaseException as error:  # noqa: BLE001 - whatever it is, somebody waits for it
            if len(questions) == 1:
                return [error]
            # Whoever's fault it was: nothing has happened, and asked alone each answers for itself.
            return [answer for question in questions for answer in self._answers([question])]


def _deliver(answered: list[tuple[asyncio.Future[A], A | BaseException]]) -> None:
    for future, answer in answered:
        if future.done():
            # Whoever asked has gone.
            continue
        if isinstance(answer, BaseException):
            future.set_exception(answer)
        else:
            future.set_result(answer)
