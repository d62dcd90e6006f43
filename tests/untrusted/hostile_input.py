"""Texts that keep an expression busy, made from the expression itself: what it begins to match, again and again."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from typing import Any

parser: Any = importlib.import_module("re._parser")
_OTHERS = (" ", "a", "1", "\n", '"', "'", "#", "_", "(", "aA1_")
_ENDS = ("\0", "\n\0", '"')
_MOST_PAIRED = 6
_CATEGORIES = {"CATEGORY_DIGIT": "1", "CATEGORY_SPACE": " ", "CATEGORY_NOT_WORD": "-"}


def hostile_inputs(pattern: re.Pattern[Any], length: int) -> Iterator[Any]:
    """Texts of this length, of the pattern's own kind (text or bytes)."""
    flags = pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags
    parts = list(dict.fromkeys(part for part in _parts(parser.parse(pattern.pattern, flags)) if part))
    for text in _texts(parts, length):
        yield text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text


def _texts(parts: list[str], length: int) -> Iterator[str]:
    for part in (*parts, *_OTHERS):
        repeated = part * (length // len(part))
        yield repeated
        # What comes after it matches nothing, so that every way to read what stands before is tried.
        for end in _ENDS:
            yield f"{repeated}{end}"
    for first in parts[:_MOST_PAIRED]:
        for part in parts[:_MOST_PAIRED]:
            yield f"{first}{part * (length // len(part))}\0"


def _parts(items: Any) -> Iterator[str]:
    """What the expression's beginnings, its parts and its neighbours match, at every depth."""
    items = list(items)
    for index, (op, value) in enumerate(items):
        yield _sample(items[: index + 1])
        yield _sample(items[index : index + 1])
        yield _sample(items[max(0, index - 1) : index + 1])
        match str(op):
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                yield from _parts(value[2])
            case "SUBPATTERN":
                yield from _parts(value[-1])
            case "ATOMIC_GROUP":
                yield from _parts(value)
            case "BRANCH":
                for branch in value[1]:
                    yield from _parts(branch)
            case "ASSERT" | "ASSERT_NOT":
                yield from _parts(value[1])


def _sample(items: Any) -> str:
    """One text that a parsed expression matches, more or less."""
    return "".join(_one(str(op), value) for op, value in items)


def _one(op: str, value: Any) -> str:
    match op:
        case "LITERAL":
            return chr(value)
        case "NOT_LITERAL":
            return "b" if value == ord("a") else "a"
        case "ANY":
            return "a"
        case "IN":
            return _member(value)
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return str(_sample(value[2]) * max(value[0], min(1, value[1])))
        case "SUBPATTERN":
            return _sample(value[-1])
        case "ATOMIC_GROUP":
            return _sample(value)
        case "BRANCH":
            return _sample(value[1][0])
    return ""


def _member(members: Any) -> str:
    """A character of a set."""
    if str(members[0][0]) == "NEGATE":
        return next(one for one in 'a 1x#.-"\né' if not any(_holds(member, one) for member in members[1:]))
    op, value = members[0]
    match str(op):
        case "LITERAL":
            return chr(int(value))
        case "RANGE":
            return chr(int(value[0]))
    return str(_CATEGORIES.get(str(value), "a"))


def _holds(member: Any, one: str) -> bool:
    op, value = member
    match str(op):
        case "LITERAL":
            return bool(value == ord(one))
        case "RANGE":
            return bool(value[0] <= ord(one) <= value[1])
    tests = {"CATEGORY_SPACE": one.isspace(), "CATEGORY_DIGIT": one.isdigit(), "CATEGORY_WORD": one.isalnum()}
    return tests.get(str(value), False)
