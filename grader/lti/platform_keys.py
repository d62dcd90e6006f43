"""The public keys of learning platforms, as they publish them: read again when an unknown one is met, or in an hour.

A forger who makes up names of keys makes us ask a platform once in a while, and no more often.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from joserfc.errors import JoseError
from joserfc.jwk import RSAKey

from grader.lti.platform_http import PlatformError, ask

KEPT_S, ASK_AGAIN_S = 3600.0, 10.0
_WAIT_S = 2.0


@dataclass
class _KnownKeys:
    lock: threading.Lock = field(default_factory=threading.Lock)
    keys: dict[str, RSAKey] = field(default_factory=dict)
    read_at: float = float("-inf")
    asked_at: float = float("-inf")
    problem: PlatformError | None = None


_known: dict[str, _KnownKeys] = {}
_adding = threading.Lock()


def platform_key(url: str, kid: str) -> RSAKey | None:
    """The key of that name among those at an address, or None: there is none, not even newly.

    Raises:
        PlatformError: the keys were needed and could not be read.
    """
    with _adding:
        known = _known.setdefault(url, _KnownKeys())
    key = _fresh(known, kid)
    if key is not None:
        return key
    # One asks for all who wait, and those do not wait for long: each of them holds a thread of the pages.
    if not known.lock.acquire(timeout=_WAIT_S):
        raise PlatformError("the platform is slow to say its keys; try again in a moment", passing=True)
    try:
        key = _fresh(known, kid)
        now = time.monotonic()
        if key is None and now < known.asked_at + ASK_AGAIN_S:
            if known.problem is not None:
                raise known.problem
        elif key is None:
            known.asked_at = now
            try:
                known.keys, known.read_at, known.problem = _read(url), now, None
            except PlatformError as error:
                known.problem = error
                raise
            key = known.keys.get(kid)
        return key
    finally:
        known.lock.release()


def forget_keys() -> None:
    """Read all of them anew when they are needed."""
    with _adding:
        _known.clear()


def _fresh(known: _KnownKeys, kid: str) -> RSAKey | None:
    return known.keys.get(kid) if time.monotonic() < known.read_at + KEPT_S else None


def _read(url: str) -> dict[str, RSAKey]:
    found = ask("GET", url, headers={"Accept": "application/json"}).json()
    listed = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(listed, list):
        raise PlatformError("the platform's keys are no JSON Web Key Set", passing=True)
    return {
        one["kid"]: key
        for one in listed
        if isinstance(one, dict) and isinstance(one.get("kid"), str) and (key := _key(one)) is not None
    }


def _key(fields: dict[str, str | list[str]]) -> RSAKey | None:
    """A key that RS256 may be checked with, or None: it is something else."""
    if fields.get("kty") != "RSA" or fields.get("use", "sig") != "sig":
        return None
    try:
        key = RSAKey.import_key({name: fields[name] for name in ("kty", "n", "e", "kid") if name in fields})
    except (JoseError, ValueError, TypeError, KeyError):
        return None
    return key if key.public_key.key_size >= 2048 else None
