"""The address of a service: HTTPS, unless it is this machine or the network is nobody else's."""

from __future__ import annotations

from urllib.parse import urlsplit

from grader.errors import UsageError
from grader.settings import settings

_OURS = ("localhost", "127.0.0.1", "::1")


def service_address(text: str) -> str:
    """The address of a service as it is kept.

    Raises:
        UsageError: it is none, or a token would pass over the network for everybody to read.
    """
    typed = text.strip().rstrip("/")
    parts = urlsplit(typed if "://" in typed else f"https://{typed}")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username:
        raise UsageError(f"`{text}` is no address of a grader; write https://HOST")
    if parts.scheme == "http" and parts.hostname not in _OURS and not settings().insecure:
        raise UsageError(
            f"{parts.hostname} over plain http: passwords and tokens could be read on the way. Use https://, or set "
            "GRADER_INSECURE=1 where the network is yours alone"
        )
    return parts.geturl()
