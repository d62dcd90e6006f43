"""Take single fields out of an untrusted event: the right type within sane limits, or `WrongFieldError`.

The error never leaves the trace reader: there it drops the event and becomes a problem.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

from grader.model.call_site import Site
from grader.model.line_change import Sums

MAX_WHOLE = 1 << 53
"""Whole numbers beyond what every JSON reader keeps exactly mean nothing here."""
MAX_TEXT = 4096
MAX_ITEMS = 1 << 17

_T = TypeVar("_T")


class WrongFieldError(ValueError):
    """A field is missing, has another type, or is out of all proportion."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Fields:
    """One event's fields, by name and type."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    def whole(self, name: str, least: int = 0) -> int:
        """A whole number from `least` on."""
        value = self._fields.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MAX_WHOLE:
            raise WrongFieldError(name)
        return value

    def real(self, name: str) -> float:
        """A finite number."""
        value = self.any_real(name)
        if not math.isfinite(value) or abs(value) > 1e12:
            raise WrongFieldError(name)
        return value

    def any_real(self, name: str) -> float:
        """A number, possibly infinite or not a number: losses may be."""
        return _real(self._fields.get(name), name)

    def text(self, name: str) -> str:
        """A text of at most 4,096 characters without control characters or lone surrogates."""
        value = self._fields.get(name)
        if not isinstance(value, str) or len(value) > MAX_TEXT:
            raise WrongFieldError(name)
        printable = value if value.isprintable() else "".join(c if c.isprintable() else "�" for c in value)
        return printable.encode("utf-8", "replace").decode("utf-8")

    def encoded(self, name: str) -> str:
        """Base64, as it is: of any length that a line may have."""
        value = self._fields.get(name)
        if not isinstance(value, str) or not value.isascii():
            raise WrongFieldError(name)
        return value

    def flag(self, name: str) -> bool:
        """True or false."""
        value = self._fields.get(name)
        if not isinstance(value, bool):
            raise WrongFieldError(name)
        return value

    def site(self, name: str = "site") -> Site | None:
        """A call site, or None for null."""
        value = self._fields.get(name)
        return None if value is None else as_site(value, name)

    def sites(self, name: str) -> tuple[Site, ...]:
        """A list of call sites."""
        return tuple(as_site(one, name) for one in self._items(name))

    def maybe(self, name: str, take: Callable[[str], _T]) -> _T | None:
        """The field as `take` reads it, or None where it is null or absent."""
        return None if self._fields.get(name) is None else take(name)

    def inner(self, name: str) -> Fields:
        """An object's own fields."""
        value = self._fields.get(name)
        if not isinstance(value, dict):
            raise WrongFieldError(name)
        return Fields(value)

    def wholes(self, name: str) -> tuple[int, ...]:
        """A list of whole numbers; negative ones are allowed."""
        return tuple(_whole(one, name) for one in self._items(name))

    def reals(self, name: str) -> tuple[float, ...]:
        """A list of numbers, possibly infinite or not numbers."""
        return tuple(_real(one, name) for one in self._items(name))

    def sums(self, name: str) -> Sums:
        """A fingerprint: numbers, null in place of a missing tensor."""
        return tuple(None if one is None else _real(one, name) for one in self._items(name))

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts."""
        return tuple(Fields({name: one}).text(name) for one in self._items(name))

    def _items(self, name: str) -> list[Any]:
        value = self._fields.get(name)
        if not isinstance(value, list) or len(value) > MAX_ITEMS:
            raise WrongFieldError(name)
        return value


def as_site(value: Any, name: str) -> Site:
    """A `[path, line, function]` list; raises WrongFieldError for anything else."""
    if not isinstance(value, list) or len(value) != 3:
        raise WrongFieldError(name)
    parts = Fields({"path": value[0], "line": value[1], "function": value[2]})
    path = parts.text("path")
    if path.startswith("/") or ".." in path.split("/"):
        raise WrongFieldError(name)
    return Site(path, parts.whole("line"), parts.text("function"))


def _real(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise WrongFieldError(name)
    try:
        return float(value)
    except OverflowError:
        raise WrongFieldError(name) from None


def _whole(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > MAX_WHOLE:
        raise WrongFieldError(name)
    return value


def plain(value: Any, depth: int = 0) -> Any:
    """A decoded value fit to be kept as it is: texts made safe, depth and sizes limited; raises WrongFieldError."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return _whole(value, "number") if isinstance(value, int) else value
    if isinstance(value, str):
        return Fields({"text": value}).text("text")
    if depth > 3 or len(value) > MAX_ITEMS:
        raise WrongFieldError("nesting")
    if isinstance(value, list):
        return [plain(one, depth + 1) for one in value]
    return {plain(key): plain(one, depth + 1) for key, one in value.items()}
