"""`record.json` back into a `RunRecord`, strictly: the supervisor wrote it, so anything odd is our own fault.

Never repairs: a record that cannot be trusted must not decide a verdict.
"""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from grader.errors import InfraError
from grader.model.run import RunRecord

_T = TypeVar("_T")


def read_record(path: Path) -> RunRecord:
    """Read a run's record.

    Raises:
        InfraError: the file is missing, damaged, or says what no run can.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse)
        record = _build(RunRecord, value, "record")
    except OSError as error:
        raise InfraError(
            f"The run left no record: {error.strerror or error}. Judge the submission again."
        ) from error
    except (ValueError, RecursionError) as error:
        raise InfraError(
            f"The record of the run is damaged ({path.name}: {error}). Judge it again."
        ) from error
    if [rank.rank for rank in record.ranks] != list(range(record.world_size)):
        raise InfraError(
            f"The record of the run is damaged ({path.name}: ranks are missing). Judge it again."
        )
    return record


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a number")


def _build(kind: type[_T], value: Any, where: str) -> _T:
    if not isinstance(value, dict):
        raise ValueError(f"{where} is not an object")
    hints = typing.get_type_hints(kind)
    # What came to records later has a default, so that older ones can still be judged again.
    needed = {one.name for one in dataclasses.fields(kind) if _has_no_default(one)}  # type: ignore[arg-type]
    if odd := (set(value) - set(hints)) | (needed - set(value)):
        raise ValueError(f"{where} has or lacks {', '.join(sorted(odd))}")
    given = {name: hint for name, hint in hints.items() if name in value}
    return kind(**{name: _convert(hint, value[name], f"{where}.{name}") for name, hint in given.items()})


def _has_no_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _convert(hint: Any, value: Any, where: str) -> Any:
    """A JSON value as the type that a field of a dataclass declares."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return value
    if origin in (types.UnionType, typing.Union):
        if value is None:
            return None
        return _convert(next(one for one in arguments if one is not types.NoneType), value, where)
    if origin is tuple:
        if not isinstance(value, list):
            raise ValueError(f"{where} is not a list")
        return tuple(_convert(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(value))
    if origin is dict:
        if not isinstance(value, dict):
            raise ValueError(f"{where} is not an object")
        return {key: _convert(arguments[1], item, f"{where}.{key}") for key, item in value.items()}
    if dataclasses.is_dataclass(hint):
        return _build(typing.cast(type, hint), value, where)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint(value)
    return _plain(hint, value, where)


def _plain(hint: Any, value: Any, where: str) -> Any:
    if hint is float and type(value) in (int, float) and math.isfinite(value):
        return float(value)
    # bool is an int to Python, not to a record.
    if hint in (int, str, bool) and type(value) is hint:
        return value
    raise ValueError(f"{where} is not {getattr(hint, '__name__', hint)}")
