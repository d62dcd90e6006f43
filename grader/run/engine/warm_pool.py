"""Pairs kept warm for the next attempts: used once, thrown away, replaced in the background.

Made while nothing is measured: only between `release` of one attempt and the start of the next. Bounded in number and
in the memory that idle pairs hold. An engine that restarts takes its containers along; they are found gone and made
anew.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor

from docker import DockerClient

from grader.errors import InfraError
from grader.run.engine.container_pair import ContainerPair
from grader.run.engine.container_settings import PairKey
from grader.run.engine.ownership import Ownership


class WarmPool:
    """Pairs by key, for one process; its methods may be called from several threads."""

    def __init__(self, client: DockerClient, ownership: Ownership, num_pairs: int, most_bytes: int) -> None:
        self._client = client
        self._ownership = ownership
        self.num_pairs = num_pairs
        """Idle pairs to keep per key; follows the queue."""
        self._most_bytes = most_bytes
        self._idle: dict[PairKey, deque[Future[ContainerPair]]] = {}
        self._lock = threading.Lock()
        # One at a time: two pairs that import torch side by side only slow each other, and whatever else runs.
        self._maker = ThreadPoolExecutor(1, "grader-pool")
        self._remover = ThreadPoolExecutor(2, "grader-remove")
        self._pair_bytes = 0
        self._closed = False

    def expect(self, key: PairKey) -> None:
        """Have pairs made for attempts of this kind; pairs of other kinds make room.

        Pairs with other devices go at once: leases change, and nobody may come for that very set again.
        """
        with self._lock:
            if self._closed:
                return
            bound = self._bound()
            line = self._idle.setdefault(key, deque())
            while len(line) < min(self.num_pairs, bound):
                line.append(self._maker.submit(self._make, key))
            for other, pairs in self._idle.items():
                while other != key and pairs and (other.gpus or self._count() > bound):
                    self._throw_away(pairs.popleft())

    def take(self, key: PairKey) -> ContainerPair:
        """A pair for one attempt, ready; made now where none is kept.

        Raises:
            InfraError: none can be had.
        """
        while True:
            with self._lock:
                line = self._idle.get(key)
                future = line.popleft() if line else None
            if future is None:
                return self._make(key)
            with contextlib.suppress(InfraError):
                pair = future.result()
                if pair.usable:
                    return pair
                self._remover.submit(pair.close)

    def release(self, pair: ContainerPair) -> None:
        """The attempt is over: take its containers away, in the background."""
        if not self._closed:
            self._remover.submit(_close_quietly, pair)
        else:
            pair.close()

    def wait(self, key: PairKey) -> None:
        """Wait until a pair of this kind is ready, where one is to be kept; raises InfraError if it never will be."""
        with self._lock:
            line = self._idle.get(key)
            future = line[0] if line else None
        if future is not None:
            future.result()

    def close(self) -> None:
        """Take everything away and wait until it is gone."""
        with self._lock:
            self._closed = True
            futures = [future for line in self._idle.values() for future in line]
            self._idle.clear()
        for future in futures:
            future.cancel()
        self._maker.shutdown(wait=True)
        for future in futures:
            if not future.cancelled() and future.exception() is None:
                self._remover.submit(_close_quietly, future.result())
        self._remover.shutdown(wait=True)

    def _make(self, key: PairKey) -> ContainerPair:
        pair = ContainerPair(self._client, self._ownership, key)
        try:
            pair.wait_ready()
            if not self._pair_bytes:
                self._pair_bytes = pair.idle_bytes
        except BaseException:
            pair.close()
            raise
        return pair

    def _bound(self) -> int:
        """Idle pairs of all kinds that the memory allows; before the first was measured, as many as are wanted."""
        if not self._pair_bytes:
            return self.num_pairs
        return self._most_bytes // self._pair_bytes

    def _count(self) -> int:
        return sum(map(len, self._idle.values()))

    def _throw_away(self, future: Future[ContainerPair]) -> None:
        if not future.cancel():
            future.add_done_callback(
                lambda done: (
                    self._remover.submit(_close_quietly, done.result()) if done.exception() is None else None
                )
            )


def _close_quietly(pair: ContainerPair) -> None:
    # Its labels still say whose it is: the next start clears away what this could not.
    with contextlib.suppress(InfraError):
        pair.close()
