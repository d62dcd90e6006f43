"""Which steps are looked at more closely: sampled at random, so that no script can behave on those alone.

All ranks of a run sample the same steps. Without a key nothing is random: it is the first step of each window, or,
for looks that nothing announces, the one in its middle.
"""

from __future__ import annotations

from typing import Any

from grader.probe.trace.keyed_hash import keyed_hash

_OLD, _VERY_OLD = 1024, 4096
_FIRST_AUDITED = 4

_UNANNOUNCED = "unannounced"

_audited: dict[int, int] = {}
"""By the first step of each doubling, that which is audited."""
_unkeyed = keyed_hash(b"", "sampling", 8)
_keyed: Any = None
"""A hash that began with the key: other code of this process can draw by it too, but not read the key from it."""


def install(key: bytes | bytearray) -> None:
    """Sample by this key from now on; empty: nothing is random."""
    global _keyed
    _keyed = keyed_hash(key, "sampling", 8) if key else None
    _audited.clear()


def is_random() -> bool:
    """Whether steps are sampled at random at all."""
    return _keyed is not None


def is_sampled(step: int, every: int) -> bool:
    """Whether this step is sampled: one in each window of `every`, of fewer steps while the run is young.

    Of more when it is old: one in each window of twice `every` from step 1,024 on, and of four times from 4,096 on.
    """
    if _keyed is None:
        return step % every == 0
    width = _width(step, every)
    window = step // width
    return step == window * width + _place(width, window)


def first_sampled(step: int, every: int, *, purpose: str = "") -> int:
    """The first sampled step from this one on; each purpose samples by itself."""
    if _keyed is None:
        offset = every // 2 if purpose else 0
        return -(-(step - offset) // every) * every + offset
    while True:
        width = _width(step, every)
        window = step // width
        found = window * width + _place(width, window, purpose)
        if found >= step and _width(found, every) == width:
            return found
        # Widths change at powers of two from 8 on, in the middle of a window perhaps.
        step = min((window + 1) * width, max(8, 1 << step.bit_length()))


def is_audited(step: int) -> bool:
    """Whether all of this step is told: one in each doubling of the run's length from step 4 on."""
    width = 1 << step.bit_length() >> 1
    return width >= _FIRST_AUDITED and step == _audited_from(width)


def first_audited(step: int) -> int:
    """The first audited step from this one on."""
    width = max(_FIRST_AUDITED, 1 << step.bit_length() >> 1)
    found = _audited_from(width)
    return found if step <= found else _audited_from(2 * width)


def _audited_from(width: int) -> int:
    if width not in _audited:  # who asks at every step pays for it once
        _audited[width] = width + lot(f"audited:{width}") % width
    return _audited[width]


def lot(what: str) -> int:
    """A number below 2^64 that is drawn for this, the same on all ranks; without a key anybody can tell it."""
    digest = (_keyed or _unkeyed).copy()
    digest.update(what.encode())
    return int.from_bytes(digest.digest(), "big")


class SampledSteps:
    """The sampled steps of a count that only goes up: found once a window instead of at every step.

    Attributes:
        next: no earlier step is sampled, of those not asked for yet; who pays at every step looks here first.
    """

    __slots__ = ("_every", "_purpose", "next")

    def __init__(self, every: int, *, unannounced: bool = False) -> None:
        """One in `every` steps, as `is_sampled` has it; unannounced: others than those that leave traces beforehand."""
        self._every = every
        self._purpose = _UNANNOUNCED if unannounced else ""
        self.next = -1

    def at(self, step: int) -> bool:
        """Whether this step is sampled, which is no earlier than any asked for before."""
        if step > self.next:
            self.next = first_sampled(step, self._every, purpose=self._purpose)
        return step == self.next


def _place(width: int, window: int, purpose: str = "") -> int:
    """Where in a window the sampled step is."""
    return lot(f"{purpose}:{width}:{window}") % width


def _width(step: int, every: int) -> int:
    # A run of forty steps ends inside its second window of 32, of which none may have been sampled: each doubling of
    # the run's length gets four looks at least, so that what goes wrong in its last half is seen. The looks of a long
    # run are many whatever the width, and each costs as much as several steps that are not looked at.
    young = (1 << (step >> 3).bit_length()) * every // 32
    old = every * (1 if step < _OLD else 2 if step < _VERY_OLD else 4)
    return min(old, max(4, young))
