"""How often somebody may do something, per account and per address: so many hits within a moving window.

Counted by the `limits` package in Redis where the broker is one, so that all web processes share a count; without
Redis, or while it is away, each process counts for itself in memory, and several allow several times as much. Never in
the database: that would add a write to the busiest path and to every wrong password, just where an attacker chooses
how many there are. Lasting limits (attempts per day, in all) are the store's. Limits per address leave room for sixty
people who share one.
"""

from __future__ import annotations

import hashlib
import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

from limits import RateLimitItemPerSecond
from limits.errors import StorageError
from limits.storage import MemoryStorage, RedisStorage
from limits.strategies import MovingWindowRateLimiter
from redis import ConnectionPool
from redis.backoff import NoBackoff
from redis.retry import Retry
from starlette.concurrency import run_in_threadpool

RETRY_S = 5.0
"""Redis that was away is asked again after that long; one request waits for it, others don't."""
_TIMEOUT_S = 0.25
_SWEEP_EVERY = 500
_PREFIX = "grader-rate"
_log = logging.getLogger("grader.web")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class RateLimit:
    """So many within any `period_s` seconds; `limit` 0: no limit."""

    name: str
    limit: int
    period_s: int

    @property
    def item(self) -> RateLimitItemPerSecond:
        """The same for `limits`."""
        return RateLimitItemPerSecond(self.limit, self.period_s, self.name.replace(" ", "-"))


@dataclass(frozen=True, slots=True)
class RateExceeded:
    """Refused until some time has passed.

    Attributes:
        wait_s: when to come again, in whole seconds.
    """

    wait_s: int


SIGN_IN_ACCOUNT_AND_ADDRESS = RateLimit("wrong passwords for one account from one address", 8, 600)
SIGN_IN_ACCOUNT = RateLimit("wrong passwords for one account", 40, 600)
"""Higher than the one before: who sits elsewhere shall not lock somebody out by guessing at their account."""
SIGN_IN_ADDRESS = RateLimit("wrong passwords from one address", 300, 600)
SIGN_ON_ADDRESS = RateLimit("halves of sign-ons from one address", 2400, 600)
"""To a provider and back again; either may ask it something, and a whole faculty may share one address."""
JOIN_ADDRESS = RateLimit("wrong invitation codes from one address", 200, 600)
SCRIPT_CHECKS = RateLimit("checks of one account of scripts that are not handed in", 90, 60)
WORKER_CLAIMS = RateLimit("claims of the workers of one token", 3000, 60)
WORKER_FILES = RateLimit("files that the workers of one token bring", 3000, 600)
"""Six hundred attempts, or a hundred workers that judge one every other minute."""
MAIL_CONFIRMATIONS = RateLimit("links to confirm an address with of one account", 5, 3600)
TOKEN_ADDRESS = RateLimit("unknown tokens from one address", 300, 600)


class RateLimiter:
    """Counts hits and refuses what is too many. Safe for threads; never fails, whatever Redis does.

    Args:
        broker_url: `redis://…` shares counts with all who name the same; anything else: this process counts alone.
    """

    def __init__(self, broker_url: str = "") -> None:
        self._memory = MemoryStorage()
        self._alone = MovingWindowRateLimiter(self._memory)
        self._lock = threading.Lock()
        self._num_hits = 0
        self._shared = _in_redis(broker_url)
        self._away_until: float | None = None

    @property
    def is_shared(self) -> bool:
        """Whether several processes share their counts."""
        return self._shared is not None

    def hit(self, limit: RateLimit, key: str) -> RateExceeded | None:
        """Count one; the answer is a refusal where there were too many already."""

        def hit(strategy: MovingWindowRateLimiter) -> RateExceeded | None:
            return None if strategy.hit(limit.item, name) else _exceeded(strategy, limit, name)

        name = _digest(key)
        return self._ask(hit) if limit.limit else None

    def exceeded(self, limit: RateLimit, key: str) -> RateExceeded | None:
        """The refusal that `hit` would give, without counting one."""

        def test(strategy: MovingWindowRateLimiter) -> RateExceeded | None:
            return None if strategy.test(limit.item, name) else _exceeded(strategy, limit, name)

        name = _digest(key)
        return self._ask(test) if limit.limit else None

    def clear(self, limit: RateLimit, key: str) -> None:
        """Forget what was counted: whoever it was has shown to be who they say."""
        if limit.limit:
            self._ask(lambda strategy: strategy.clear(limit.item, _digest(key)))

    async def hit_async(self, limit: RateLimit, key: str) -> RateExceeded | None:
        """`hit` for handlers on the event loop: Redis is waited for in a thread."""
        return await run_in_threadpool(self.hit, limit, key) if self.is_shared else self.hit(limit, key)

    async def exceeded_async(self, limit: RateLimit, key: str) -> RateExceeded | None:
        """`exceeded` for handlers on the event loop."""
        if self.is_shared:
            return await run_in_threadpool(self.exceeded, limit, key)
        return self.exceeded(limit, key)

    def _ask(self, use: Callable[[MovingWindowRateLimiter], _T]) -> _T:
        if self._shared is not None and self._may_try():
            try:
                answer = use(self._shared)
            except StorageError as error:
                self._went_away(error)
            else:
                self._is_back()
                return answer
        with self._lock:
            self._sweep()
            return use(self._alone)

    def _may_try(self) -> bool:
        with self._lock:
            if self._away_until is not None:
                if time.monotonic() < self._away_until:
                    return False
                # This request tries; the others go on without waiting for what comes of it.
                self._away_until = time.monotonic() + RETRY_S
            return True

    def _went_away(self, error: StorageError) -> None:
        with self._lock:
            known, self._away_until = self._away_until is not None, time.monotonic() + RETRY_S
        if not known:
            _log.warning("Redis is away, rate limits are counted per process: %s", error.storage_error)

    def _is_back(self) -> None:
        with self._lock:
            away, self._away_until = self._away_until is not None, None
        if away:
            _log.info("Redis is back, rate limits are shared again")

    def _sweep(self) -> None:
        """Drop keys without a hit in their window: the storage keeps each for good, and walks through all of them."""
        self._num_hits += 1
        if self._num_hits % _SWEEP_EVERY == 0:
            for key in [key for key, hits in self._memory.events.items() if not hits]:
                self._memory.clear(key)


def _in_redis(url: str) -> MovingWindowRateLimiter | None:
    first = url.partition(";")[0]
    if urlsplit(first).scheme not in ("redis", "rediss"):
        return None
    connections = ConnectionPool.from_url(
        first,
        socket_timeout=_TIMEOUT_S,
        socket_connect_timeout=_TIMEOUT_S,
        # A connection that a restart of Redis has cut is opened anew once; nobody waits for more.
        retry=Retry(NoBackoff(), 1),
    )
    storage = RedisStorage(first, connection_pool=connections, key_prefix=_PREFIX, wrap_exceptions=True)
    return MovingWindowRateLimiter(storage)


def _exceeded(strategy: MovingWindowRateLimiter, limit: RateLimit, name: str) -> RateExceeded:
    left = strategy.get_window_stats(limit.item, name).reset_time - time.time()
    return RateExceeded(min(limit.period_s, max(1, math.ceil(left))))


def _digest(key: str) -> str:
    # Names and addresses are nobody's business in the broker, and some are no valid keys.
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
