"""Which steps are looked at more closely: drawn by lot, so that no script can behave on those alone.

Ranks of a run draw the same lots. Without a secret the lot falls on the first step of each window.
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
    """Whether the lot falls on this step: on one in each window of `every`."""
    window, place = divmod(step, every)
    if not _secret:
        return place == 0
    lot = hashlib.blake2b(f"{_secret}:{every}:{window}".encode(), digest_size=8).digest()
    return place == int.from_bytes(lot, "big") % every
