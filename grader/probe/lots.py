"""Which steps are looked at more closely: drawn by lot, so that no script can behave on those alone.

Ranks of a run draw the same lots. Without a secret nothing is drawn: it is the first step of each window.
"""

from __future__ import annotations

import hashlib
from typing import Any

_keyed: Any = None
"""A hash that began with the secret: other code of this process can draw by it too, but not read the secret from it."""


def install(secret: int) -> None:
    """Draw by this from now on; 0: nothing is drawn."""
    global _keyed
    _keyed = hashlib.blake2b(digest_size=8, key=str(secret).encode()[:64]) if secret else None


def drawn() -> bool:
    """Whether lots are drawn at all."""
    return _keyed is not None


def falls(step: int, every: int) -> bool:
    """Whether the lot falls on this step: on one in each window of `every`, of fewer steps while the run is young."""
    if _keyed is None:
        return step % every == 0
    width = _width(step, every)
    window, place = divmod(step, width)
    lot = _keyed.copy()
    lot.update(f"{width}:{window}".encode())
    return place == int.from_bytes(lot.digest(), "big") % width


class Looks:
    """Where the lot falls, for a count that only goes up: drawn once a window instead of at every step."""

    __slots__ = ("_every", "_next")

    def __init__(self, every: int) -> None:
        self._every = every
        self._next = -1

    def at(self, step: int) -> bool:
        """Whether the lot falls on this step, which is no earlier than any asked for before."""
        if step > self._next:
            self._next = step
            while not falls(self._next, self._every):
                self._next += 1
        return step == self._next


def _width(step: int, every: int) -> int:
    # A run of forty steps ends inside its second window of 32, where the lot may never have fallen: each doubling of
    # the run's length gets four looks at least, so that what goes wrong in its last half is seen.
    young = (1 << (step >> 3).bit_length()) * every // 32
    return min(every, max(4, young))
