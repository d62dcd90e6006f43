"""The secret that cookies are signed with: the one that was given, or one that is made once and kept."""

from __future__ import annotations

import secrets
from pathlib import Path

from grader.errors import UsageError
from grader.files import write_once

_MIN_LENGTH = 32


def service_secret(given: str, folder: Path) -> str:
    """The given secret, or the one kept in this folder, made there if need be.

    Raises:
        UsageError: the one given is short enough to be guessed.
    """
    if given:
        if len(given) < _MIN_LENGTH:
            raise UsageError(f"GRADER_SECRET_KEY has {len(given)} characters; give it {_MIN_LENGTH} or more")
        return given
    kept = folder / "secret_key"
    if not kept.exists():
        folder.mkdir(parents=True, exist_ok=True)
        # Of two processes that start at once, the first one's holds.
        write_once(kept, secrets.token_urlsafe(48), mode=0o600)
    return kept.read_text(encoding="ascii")
