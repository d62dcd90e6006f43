"""Texts that are kept and must not be read from the database alone: encrypted with the service's secret key."""

from __future__ import annotations

from base64 import urlsafe_b64encode

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF


class SealedText:
    """Seals and opens texts of one purpose; what another purpose or another key has sealed does not open."""

    def __init__(self, secret: str, purpose: str) -> None:
        derived = HKDF(SHA256(), 32, salt=None, info=purpose.encode()).derive(secret.encode())
        self._key = Fernet(urlsafe_b64encode(derived))

    def seal(self, text: str) -> str:
        """The text as it may be kept."""
        return self._key.encrypt(text.encode()).decode()

    def open(self, sealed: str) -> str | None:
        """The text again; None: the service's key is another one now."""
        try:
            return self._key.decrypt(sealed.encode()).decode()
        except InvalidToken:
            return None
