"""Hashes that begin with a key, and do not keep it: what is found in memory afterwards leads to no key."""

from __future__ import annotations

import hashlib
from typing import Any

_WIPING = bytes(1024)
"""More than any implementation of the hash buffers: the key's own block is overwritten once this has gone through."""


def keyed_hash(key: bytes | bytearray, purpose: str, digest_bytes: int) -> Any:
    """A hash to be copied and fed, different for each purpose.

    Args:
        key: at most 64 bytes; the caller's to wipe.
        purpose: what it is for. digest_bytes: length of its digests.
    """
    keyed = hashlib.blake2b(purpose.encode(), digest_size=digest_bytes, key=key)
    keyed.update(_WIPING)
    return keyed
