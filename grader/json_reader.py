"""JSON into frozen dataclasses, strictly: what was stored by one part of the grader and is read by another.

Never repairs: no text becomes a number, no unknown key is passed over, and no number is infinite or NaN. A key may be
missing where its field has a default, so that what was stored before the field came is still read.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from functools import cache
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

_T = TypeVar("_T")
_WORDS = {"missing": "is missing", "unexpected_keyword_argument": "does not belong here"}


def read_json(kind: type[_T], text: str) -> _T:
    """The value of this type that the text holds.

    Raises:
        ValueError: it holds none; says where, and what is wrong there.
    """
    try:
        return read_value(kind, json.loads(text))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_value(kind: type[_T], value: Any) -> _T:
    """The value of this type that was made of decoded JSON.

    Raises:
        ValueError: as `read_json`.
    """
    try:
        # Strictly, lists become tuples in JSON text only. A lone surrogate must not make the rest unreadable.
        text = json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", errors="replace")
    except ValueError:
        raise ValueError("it holds NaN or an infinity") from None
    try:
        found: _T = _adapter(cast(Hashable, kind)).validate_json(text, strict=True, extra="forbid")
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        said = _WORDS.get(first["type"], f"is refused: {first['msg']}")
        raise ValueError(f"{_path(first['loc'])} {said}") from None
    return found


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _path(location: tuple[int | str, ...]) -> str:
    """`ranks[0].exit_code`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return "".join(parts).removeprefix(".") or "all of it"
