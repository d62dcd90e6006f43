"""Links in mails that do something without a password: signed, for one person and one purpose each."""

from __future__ import annotations

from dataclasses import dataclass

from itsdangerous import BadSignature, URLSafeSerializer, URLSafeTimedSerializer

from grader.store.tables.mail import MailKind

CONFIRM_S = 3 * 86400
"""How long an address may be confirmed."""
_OFF, _CONFIRM = "grader.mail.off", "grader.mail.confirm"


@dataclass(frozen=True, slots=True)
class AddressToConfirm:
    """Who wants to be reached at which address."""

    person_id: int
    address: str


def off_token(secret: str, person_id: int, kind: MailKind) -> str:
    """Opens the way to no more mails of a kind; holds for good, as mails are kept for good."""
    return str(URLSafeSerializer(secret, salt=_OFF).dumps([person_id, kind.value]))


def read_off_token(secret: str, token: str) -> tuple[int, MailKind] | None:
    """Who wants no more of which kind, or None: nobody signed this."""
    try:
        person_id, kind = URLSafeSerializer(secret, salt=_OFF).loads(token)
        return int(person_id), MailKind(kind)
    except (BadSignature, TypeError, ValueError):
        return None


def confirm_token(secret: str, wanted: AddressToConfirm) -> str:
    """Proves that its holder reads mail at an address."""
    return str(URLSafeTimedSerializer(secret, salt=_CONFIRM).dumps([wanted.person_id, wanted.address]))


def read_confirm_token(secret: str, token: str) -> AddressToConfirm | None:
    """What is confirmed, or None: nobody signed this, or too long ago."""
    try:
        person_id, address = URLSafeTimedSerializer(secret, salt=_CONFIRM).loads(token, max_age=CONFIRM_S)
        return AddressToConfirm(int(person_id), str(address))
    except (BadSignature, TypeError, ValueError):
        return None
