"""How often somebody may knock: buckets that fill again steadily, per account and per address.

In this process's memory, on purpose. A limit in the database would add a write to the busiest path and to every wrong
password, just where an attacker chooses how many there are; what memory loses is little: several web processes allow
several times as much, and a restart forgets. Lasting limits (attempts per day, in all) are the store's. Limits per
address leave room for sixty people who share one.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass

_MOST_KEYS = 50_000


@dataclass(frozen=True, slots=True)
class Rate:
    """So many at once, and as many again every `period_s` seconds; `limit` 0: no limit."""

    name: str
    limit: int
    period_s: float


@dataclass(frozen=True, slots=True)
class TooMany:
    """Refused until some time has passed.

    Attributes:
        wait_s: when to come again, in whole seconds.
    """

    wait_s: int


SIGN_IN_HERE = Rate("wrong passwords for one account from one address", 8, 600)
SIGN_IN_ACCOUNT = Rate("wrong passwords for one account", 40, 600)
"""Higher than the one before: who sits elsewhere shall not lock somebody out by guessing at their account."""
SIGN_IN_ADDRESS = Rate("wrong passwords from one address", 300, 600)
JOIN_ADDRESS = Rate("wrong invitation codes from one address", 200, 600)
LOOKS = Rate("looks of one account at scripts that are not handed in", 90, 60)
TOKEN_ADDRESS = Rate("unknown tokens from one address", 300, 600)


class Rates:
    """All buckets of this process. Safe for threads; keys of a flood push out the oldest ones."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()

    def take(self, rate: Rate, key: str) -> TooMany | None:
        """Count one; the answer is a refusal where there were too many already."""
        return self._look(rate, key, 1.0)

    def full(self, rate: Rate, key: str) -> TooMany | None:
        """The refusal that `take` would give, without counting one."""
        return self._look(rate, key, 0.0)

    def forgive(self, rate: Rate, key: str) -> None:
        """Forget what was counted: whoever it was has shown to be who they say."""
        with self._lock:
            self._left.pop((rate.name, key), None)

    def _look(self, rate: Rate, key: str, cost: float) -> TooMany | None:
        if not rate.limit:
            return None
        now = time.monotonic()
        with self._lock:
            left, at = self._left.pop((rate.name, key), (float(rate.limit), now))
            left = min(rate.limit, left + (now - at) * rate.limit / rate.period_s)
            allowed = left >= 1.0
            self._left[rate.name, key] = (left - cost if allowed else left, now)
            if len(self._left) > _MOST_KEYS:
                self._left.popitem(last=False)
        if allowed:
            return None
        return TooMany(math.ceil((1.0 - left) * rate.period_s / rate.limit))
