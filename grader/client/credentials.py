"""Where one is signed in: an address and a token, from the environment or from a file that only its owner reads.

A password is sent once, for a token, and kept nowhere.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from grader.errors import UsageError
from grader.files import write_whole
from grader.http.address import service_address
from grader.settings import settings

_FILE = "login.json"


@dataclass(frozen=True, slots=True)
class Key:
    """A service and what opens it.

    Attributes:
        url: `https://host[:port][/path]`, without a slash at its end; token: shown in no message.
    """

    url: str
    token: str = field(repr=False)


def known() -> Key:
    """Where to hand in: `GRADER_URL` and `GRADER_TOKEN` come first, then what `grader login` kept.

    Raises:
        UsageError: nobody is signed in.
    """
    kept = _read()
    url = service_address(settings().url) if settings().url else kept.default
    token = settings().token or kept.tokens.get(url, "")
    if not url or not token:
        where = f" to {url}" if url else ""
        raise UsageError(f"not signed in{where}: `grader login URL`, or set GRADER_URL and GRADER_TOKEN")
    return Key(url, token)


def sign_in(url: str, token: str) -> Key:
    """The key for a service; whether it opens anything, the service says."""
    return Key(service_address(url), token.strip())


def keep(key: Key) -> Path:
    """Keep a key for the commands to come, and return the file."""
    return _write(_Kept(key.url, {**_read().tokens, key.url: key.token}))


def forget(url: str | None = None) -> Key | None:
    """Drop the key of a service, or of the one that is used by default, and return it; None: there was none."""
    kept = _read()
    url = service_address(url) if url else kept.default
    if url not in kept.tokens:
        return None
    rest = {one: token for one, token in kept.tokens.items() if one != url}
    _write(_Kept(next(iter(rest), ""), rest))
    return Key(url, kept.tokens[url])


@dataclass(frozen=True, slots=True)
class _Kept:
    default: str
    tokens: dict[str, str]


def _read() -> _Kept:
    path = settings().config_root / _FILE
    try:
        # Read by hand: what reads JSON into any dataclass takes longer to import than a command of a client may take.
        kept = _Kept(**json.loads(path.read_text(encoding="utf-8")))
        if not all(isinstance(text, str) for text in (kept.default, *kept.tokens, *kept.tokens.values())):
            raise TypeError
        return kept
    except FileNotFoundError:
        return _Kept("", {})
    except (AttributeError, OSError, TypeError, ValueError):
        raise UsageError(f"{path} is not what `grader login` writes; remove it and sign in again") from None


def _write(kept: _Kept) -> Path:
    path = settings().config_root / _FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(path, json.dumps(asdict(kept), indent=2), mode=0o600)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None
    return path
