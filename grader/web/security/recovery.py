"""Links that let somebody in once whom nothing else lets in: made on the server, by whoever may run commands there."""

from __future__ import annotations

import secrets

from itsdangerous import BadSignature, URLSafeTimedSerializer

from grader.store.people.people import Account
from grader.web.security.sessions import Session

LIFETIME_S = 1800


class RecoveryKeys:
    """Makes and reads the keys that such links carry: signed, for one account and one epoch of it, used once."""

    def __init__(self, secret: str) -> None:
        self._signer = URLSafeTimedSerializer(secret, salt="grader.recovery")

    def make(self, account: Account) -> str:
        """A key that opens this account within the next half hour."""
        return str(self._signer.dumps([account.id, account.session_epoch, secrets.token_urlsafe(16)]))

    def read(self, key: str) -> Session | None:
        """What a key opens, or None: it is none of ours, or too old; whether it was used already, the store knows."""
        try:
            return Session(*self._signer.loads(key, max_age=LIFETIME_S))
        except BadSignature:
            return None
