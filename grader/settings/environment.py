"""How a variable of the environment becomes a value: by name and kind, without a library.

pydantic reads settings, too, and takes longer to import than most commands take altogether.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_TRUTHS = {
    "1": True,
    "true": True,
    "yes": True,
    "on": True,
    "0": False,
    "false": False,
    "no": False,
    "off": False,
}
_CALLED = {int: "a whole number", float: "a number", bool: "yes or no"}


def given(name: str) -> str | None:
    """The text of `GRADER_NAME`, or of the file that `GRADER_NAME_FILE` names; None where neither is set.

    Raises:
        ValueError: the file cannot be read.
    """
    variable = f"GRADER_{name.upper()}"
    value = os.environ.get(variable)
    path = os.environ.get(f"{variable}_FILE", "")
    if value is not None or not path:
        return value
    try:
        return Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{variable}_FILE names a file that cannot be read: {error}") from None


def given_values(kind: type[DataclassInstance]) -> dict[str, Any]:
    """Fields of a dataclass that the environment has a value for.

    Raises:
        ValueError: some of its values are none for their fields; names each.
    """
    hints = get_type_hints(kind)
    found: dict[str, Any] = {}
    wrong: list[str] = []
    for one in fields(kind):
        text: str | None = None
        try:
            text = given(one.name)
            if text is not None and (text or hints[one.name] in (str, str | None)):
                found[one.name] = _value(text, hints[one.name])
        except ValueError as error:
            wrong.append(
                str(error) if "GRADER_" in str(error) else f"GRADER_{one.name.upper()}={text}: {error}"
            )
    if wrong:
        raise ValueError("; ".join(wrong))
    return found


def _value(text: str, hint: Any) -> Any:
    """The text as one of the kinds that settings have; raises ValueError that says what it should be."""
    kind = next(_kinds(hint))
    if get_origin(kind) is Literal:
        if text not in get_args(kind):
            raise ValueError(f"must be {' or '.join(get_args(kind))}")
        return text
    try:
        return _TRUTHS[text.lower()] if kind is bool else kind(text)
    except (KeyError, ValueError):
        raise ValueError(f"must be {_CALLED[kind]}") from None


def _kinds(hint: Any) -> Iterator[Any]:
    """What a value may be besides None."""
    if get_origin(hint) is Literal or not get_args(hint):
        yield hint
    else:
        yield from (one for one in get_args(hint) if one is not NoneType)
