"""The keys by which learning platforms know us: the first signs, all are published, so that one can be replaced."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import RSAKey

from grader.errors import UsageError
from grader.files import write_once

ALGORITHM = "RS256"
_BITS = 2048
_PEM = re.compile(r"-----BEGIN ([A-Z ]*PRIVATE KEY)-----.*?-----END \1-----", re.DOTALL)
_LIFETIME_S = 300


@dataclass(frozen=True)
class ToolKeys:
    """Our RSA keys, the one that signs first."""

    keys: tuple[RSAKey, ...]

    def public(self) -> dict[str, Any]:
        """All of them as a JSON Web Key Set, without what is private."""
        return {"keys": [dict(key.as_dict(private=False)) for key in self.keys]}

    def sign(self, claims: Mapping[str, Any]) -> str:
        """A token with these claims, which holds for five minutes from now."""
        now = int(time.time())
        header = {"alg": ALGORITHM, "typ": "JWT", "kid": self.keys[0].kid}
        return jwt.encode(header, {"iat": now, "exp": now + _LIFETIME_S, **claims}, self.keys[0])


def tool_keys(given: str, folder: Path) -> ToolKeys:
    """The given keys, or the one kept in this folder, made there if need be.

    Raises:
        UsageError: there is none among what was given, or one that is too short.
    """
    kept = folder / "lti_key.pem"
    if not given and not kept.exists():
        folder.mkdir(parents=True, exist_ok=True)
        made = RSAKey.generate_key(_BITS).as_pem(private=True)
        # Of two processes that start at once, the first one's holds.
        write_once(kept, made, mode=0o600)
    where = "GRADER_LTI_KEY" if given else str(kept)
    return ToolKeys(_read(given or kept.read_text(encoding="ascii"), where))


def _read(text: str, where: str) -> tuple[RSAKey, ...]:
    found = [one.group() for one in _PEM.finditer(text)]
    if not found:
        raise UsageError(f"{where} holds no private key; give it an RSA key as PEM")
    try:
        keys = tuple(RSAKey.import_key(one, {"use": "sig", "alg": ALGORITHM}) for one in found)
    except (JoseError, ValueError, TypeError):
        raise UsageError(f"{where} holds a key that is no RSA key as PEM without a password") from None
    for key in keys:
        if key.public_key.key_size < _BITS:
            raise UsageError(f"{where} holds a key of {key.public_key.key_size} bits; 2048 are the least")
        key.ensure_kid()
    return keys
