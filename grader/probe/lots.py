"""Which steps are looked at more closely: drawn by lot, so that no script can behave on those alone.

Ranks of a run draw the same lots. Without a secret nothing is drawn: it is the first step of each window.
"""

from __future__ import annotations

import hashlib

_secret = 0


def install(secret: int) -> None:
    """Draw by this from now on; 0: nothing is drawn."""
    global _secret
    _secret = secret


def drawn() -> bool:
    """Whether lots are drawn at all."""
    return _secret != 0


def falls(step: int, every: int) -> bool:
    """Whether the lot falls on this step: on one in each window of `every`, of fewer steps while the run is young."""
    if not _secret:
        return step % every == 0
    width = _width(step, every)
    window, place = divmod(step, width)
    lot = hashlib.blake2b(f"{_secret}:{width}:{window}".encode(), digest_size=8).digest()
    return place == int.from_bytes(lot, "big") % width


def _width(step: int, every: int) -> int:
    # A run of forty steps ends inside its second window of 32, where the lot may never have fallen: each doubling of
    # the run's length gets four looks at least, so that what goes wrong in its last half is seen.
    young = (1 << (step >> 3).bit_length()) * every // 32
    return min(every, max(4, young))
