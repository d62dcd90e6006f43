"""Which steps are looked at more closely: sampled at random, so that no script can behave on those alone.

All ranks of a run sample the same steps. Without a key nothing is random: it is the first step of each window.
"""

from __future__ import annotations

from typing import Any

from grader.probe.keyed_hash import keyed_hash

_keyed: Any = None
"""A hash that began with the key: other code of this process can draw by it too, but not read the key from it."""


def install(key: bytes | bytearray) -> None:
    """Sample by this key from now on; empty: nothing is random."""
    global _keyed
    _keyed = keyed_hash(key, "sampling", 8) if key else None


def is_random() -> bool:
    """Whether steps are sampled at random at all."""
    return _keyed is not None


def is_sampled(step: int, every: int) -> bool:
    """Whether this step is sampled: one in each window of `every`, of fewer steps while the run is young."""
    if _keyed is None:
        return step % every == 0
    width = _width(step, every)
    window, place = divmod(step, width)
    digest = _keyed.copy()
    digest.update(f"{width}:{window}".encode())
    return place == int.from_bytes(digest.digest(), "big") % width


class SampledSteps:
    """The sampled steps of a count that only goes up: found once a window instead of at every step."""

    __slots__ = ("_every", "_next")

    def __init__(self, every: int) -> None:
        self._every = every
        self._next = -1

    def at(self, step: int) -> bool:
        """Whether this step is sampled, which is no earlier than any asked for before."""
        if step > self._next:
            self._next = step
            while not is_sampled(self._next, self._every):
                self._next += 1
        return step == self._next


def _width(step: int, every: int) -> int:
    # A run of forty steps ends inside its second window of 32, of which none may have been sampled: each doubling of
    # the run's length gets four looks at least, so that what goes wrong in its last half is seen.
    young = (1 << (step >> 3).bit_length()) * every // 32
    return min(every, max(4, young))
