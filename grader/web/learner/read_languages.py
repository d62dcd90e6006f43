"""Which languages whoever asks for a page reads: the one that was chosen on it, then those of the browser."""

from __future__ import annotations

import re

from starlette.requests import Request

LANGUAGES = {
    "en": "English",
    "de": "Deutsch",
    "fr": "Français",
    "es": "Español",
    "it": "Italiano",
    "nl": "Nederlands",
}
"""What they call themselves; others are told by their codes."""
_WANTED = re.compile(
    r"([a-z]{2,3})(?:-[\w-]+)?\s*(?:;\s*q\s*=\s*([01](?:\.\d{1,3})?))?", re.ASCII | re.IGNORECASE
)
_MOST = 20


def read_languages(request: Request) -> tuple[str, ...]:
    """Codes such as `de`, the most wanted first."""
    parts = request.headers.get("accept-language", "").split(",")[:_MOST]
    found = [match for part in parts if (match := _WANTED.fullmatch(part.strip())) is not None]
    wanted = sorted(found, key=lambda match: -float(match[2] or 1))
    return (request.query_params.get("language", ""), *(match[1].lower() for match in wanted))
