"""Problems of a file that an author writes, in the author's words: line, key, and what to write instead.

Turns what `tomllib` and pydantic complain about into such problems, for every kind of TOML file there is; which keys a
file has is its own schema's to say, and what they mean to each other its reader's.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from grader.catalog.formats.toml_lines import Key, line_of

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to mend; `line` is 1-based, 0 where the file as a whole is meant."""

    line: int
    text: str


def listed(what: str, file: str, problems: list[Problem]) -> str:
    """One message with all problems: `what` needs mending, `file` is where the lines are."""
    num = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    lines = [f"  {file}:{p.line}: {p.text}" if p.line else f"  {p.text}" for p in problems]
    return "\n".join([f"{what} has {num} for its author to mend:", *lines])


def shaped(schema: type[M], raw: dict[str, Any], lines: dict[Key, int]) -> tuple[M | None, list[Problem]]:
    """The file as its schema sees it, or None and everything that does not fit."""
    try:
        return schema.model_validate(raw), []
    except ValidationError as error:
        return None, [_shape(detail, lines, schema) for detail in error.errors()]


def not_toml(error: tomllib.TOMLDecodeError, text: str) -> Problem:
    """Where a text stops being TOML."""
    message = str(error)
    place = re.search(r"\(at (?:line (\d+), column (\d+)|end of document)\)", message)
    line = int(place[1]) if place and place[1] else max(1, len(text.splitlines()))
    what = message[: place.start()].strip() if place else message
    quoted = text.splitlines()[line - 1].strip() if text.strip() else ""
    return Problem(line, f"not TOML: {what}. Mend `{quoted[:80]}`; nothing after it was read.")


def _shape(detail: ErrorDetails, lines: dict[Key, int], schema: type[BaseModel]) -> Problem:
    # A key that is missing has no line: its table's is given.
    key = tuple(part for part in detail["loc"] if part != "[key]")
    line, name = line_of(lines, key), spelled(key)
    owner, field = _owner(key, schema)
    wanted = _example(str(key[-1]) if key else "", field)
    match detail["type"]:
        case "missing":
            return Problem(line, f"{name}: is missing. {wanted or 'Add it.'}")
        case "extra_forbidden":
            known = sorted(owner.model_fields) if owner else []
            close = difflib.get_close_matches(str(key[-1]), known, n=1)
            advice = f"Write `{close[0]}`." if close else f"Known here: {', '.join(known)}."
            return Problem(line, f"{name}: there is no such key. {advice}")
        case "string_pattern_mismatch":
            return Problem(
                line,
                f"{name}: {detail['input']!r} is not spelled as it must be ({_pattern(detail)}). {wanted}".rstrip(),
            )
    said = detail["msg"].removeprefix("Input ")
    return Problem(line, f"{name}: {_value(detail['input'])} {said}. {wanted}".rstrip())


def _value(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _pattern(detail: ErrorDetails) -> str:
    pattern = str(detail.get("ctx", {}).get("pattern", ""))
    if pattern.startswith("^[A-Z]"):
        return "a rule code such as DATA002"
    if pattern.startswith("^accepted"):
        return "a path such as accepted/distributed_sampler.py"
    if "[dhm]" in pattern:
        return "a span of time such as 7d or 1d 2h 30m"
    return "small letters, digits, - and _" if pattern.startswith("^[a-z") else f"pattern {pattern}"


def spelled(key: Key) -> str:
    """A key as an author would write it, `rubric[2].points`."""
    text = ""
    for part in key:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text or "the file"


def _owner(key: Key, schema: type[BaseModel]) -> tuple[type[BaseModel] | None, FieldInfo | None]:
    """The table class that a key lies in, and the key's field if it has one."""
    owner: type[BaseModel] | None = schema
    for part in key[:-1]:
        if owner is not None and isinstance(part, str) and part in owner.model_fields:
            inner = table_in(owner.model_fields[part].annotation)
            owner = inner or owner
    field = owner.model_fields.get(str(key[-1])) if owner and key else None
    return owner, field


def table_in(annotation: Any) -> type[BaseModel] | None:
    """The table that a key's type holds, if it holds one."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for arg in get_args(annotation) if (found := table_in(arg))), None)


def _example(key: str, field: FieldInfo | None) -> str:
    examples = examples_of(field.annotation, field) if field else None
    if not examples:
        table = table_in(field.annotation) if field else None
        return f"Add a table: {(table.__doc__ or '').splitlines()[0]}" if table else ""
    return f"Write `{key} = {as_toml(examples[0])}`."


def examples_of(annotation: Any, field: FieldInfo) -> list[Any] | None:
    """How a key may be written."""
    if field.examples:
        return field.examples
    # `Annotated[int, Field(examples=…)] | None` keeps the inner field in the union's arguments.
    for arg in get_args(annotation):
        for extra in getattr(arg, "__metadata__", ()):
            if isinstance(extra, FieldInfo) and extra.examples:
                return extra.examples
    return None


def as_toml(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        return f"[{', '.join(as_toml(v) for v in value)}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{k} = {as_toml(v)}' for k, v in value.items())} }}"
    return str(value)


def close_to(word: str, known: frozenset[str]) -> str:
    """A guess what was meant, " (did you mean x?)", or nothing."""
    close = difflib.get_close_matches(word, sorted(known), n=1)
    return f" (did you mean {close[0]}?)" if close else ""
