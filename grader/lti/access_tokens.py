"""Tokens for a platform's services, got with our word signed by our key, and kept until shortly before they end."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from grader.lti.platform_http import PlatformAnswer, PlatformError, ask
from grader.lti.tool_keys import ToolKeys
from grader.store.lti.lti_platforms import PlatformTerms

_EARLY_S, _SHORTEST_S, _LONGEST_S = 60.0, 60.0, 3600.0
_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    until: float


@dataclass
class PlatformServices:
    """Asks the services of one platform, with tokens that it gives us. Safe for threads."""

    platform: PlatformTerms
    keys: ToolKeys
    _tokens: dict[frozenset[str], _Token] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(
        self,
        method: str,
        url: str,
        scopes: Collection[str],
        *,
        headers: Mapping[str, str],
        content: Any = None,
    ) -> PlatformAnswer:
        """What one of its services answers to somebody with these scopes.

        A token that it takes no more is replaced once.

        Raises:
            PlatformError: it gives no token, or the service cannot be asked.
        """
        wanted = frozenset(scopes)
        try:
            return self._ask(method, url, wanted, headers, content)
        except PlatformError as error:
            if error.status != 401:
                raise
            self._tokens.pop(wanted, None)
            return self._ask(method, url, wanted, headers, content)

    def close(self) -> None:
        """Forget the tokens."""
        self._tokens.clear()

    def _ask(
        self, method: str, url: str, scopes: frozenset[str], headers: Mapping[str, str], content: Any
    ) -> PlatformAnswer:
        shown = {**headers, "Authorization": f"Bearer {self._token(scopes)}"}
        return ask(method, url, headers=shown, content=content)

    def _token(self, scopes: frozenset[str]) -> str:
        with self._lock:
            known = self._tokens.get(scopes)
            if known is None or known.until <= time.monotonic():
                known = self._tokens[scopes] = self._new_token(scopes)
            return known.text

    def _new_token(self, scopes: frozenset[str]) -> _Token:
        platform = self.platform
        ours = {
            "iss": platform.client_id,
            "sub": platform.client_id,
            "aud": platform.token_audience or platform.token_url,
            "jti": secrets.token_urlsafe(24),
        }
        form = {
            "grant_type": "client_credentials",
            "client_assertion_type": _ASSERTION,
            "client_assertion": self.keys.sign(ours),
            "scope": " ".join(sorted(scopes)),
        }
        try:
            given = ask("POST", platform.token_url, headers={"Accept": "application/json"}, data=form).json()
        except PlatformError as error:
            # It says 400 to a key that it has not read yet, too.
            said = f"no token for the platform's services: {error}"
            raise PlatformError(said, passing=True, wait_s=error.wait_s) from None
        token = given.get("access_token") if isinstance(given, dict) else None
        if not isinstance(token, str) or not token.isprintable() or not token:
            raise PlatformError("the platform gave no token for its services", passing=True)
        lasts = given.get("expires_in")
        lasts = float(lasts) if isinstance(lasts, int | float) else _LONGEST_S
        kept_s = min(max(lasts - _EARLY_S, 0.0), _LONGEST_S)
        return _Token(token, time.monotonic() + kept_s)
