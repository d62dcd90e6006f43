"""Which sample of the data set that it holds a script's own class asks for: `self.data[self.indices[i]]` and the like.

Its own `__getitem__` says so, called on a copy whose data set only notes the index and gives nothing. It is called only
where all that runs up to there reads the copy's own fields: nothing is loaded, drawn at random or written by that.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterable
from types import CodeType, FunctionType
from typing import Any

_PLAIN = {"int", "len", "range", "divmod", "min", "max", "abs", "item", "start", "stop", "step", "IndexError"}
"""Names that change nothing, wherever they are called."""
_WRITES = {"STORE_ATTR", "STORE_SUBSCR", "STORE_SLICE", "STORE_GLOBAL", "DELETE_ATTR", "DELETE_SUBSCR"}
_LIBRARIES = ("builtins", "collections", "numpy", "torch", "torchvision")


class _Asked(BaseException):  # so that no `except Exception` of the script takes it
    def __init__(self, index: Any) -> None:
        super().__init__()
        self.index = index


class _Noting:
    """Stands in for a data set: whoever asks it for a sample gets no further."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: Any) -> Any:
        raise _Asked(index)


def held_below(dataset: Any) -> tuple[Any, Callable[[Iterable[int]], list[int]]] | None:
    """The data set that a script's own class takes its samples from, with the way to the indices of that.

    None where there is no such one, or nothing tells, which raises where an index has no one sample there.
    Only of a set that is no longer than what it holds: one that repeats its samples is a set of its own.
    """
    own = type(dataset)
    fields = getattr(dataset, "__dict__", None)
    method = getattr(own, "__getitem__", None)
    if not isinstance(fields, dict) or not isinstance(method, FunctionType) or _of_library(own):
        return None
    if hasattr(own, "__del__"):  # a copy would close what the data set has open
        return None
    name = _holder(fields)
    if name is None or not _plain(method.__code__, name, fields.keys()):
        return None
    num_own, num_held = len(dataset), len(fields[name])
    if not 0 < num_own <= num_held:
        return None

    def below(indices: Iterable[int]) -> list[int]:
        copy = object.__new__(own)
        copy.__dict__.update(fields)  # as they are now: shares may be dealt anew in each epoch
        copy.__dict__[name] = _Noting(num_held)
        return [_asked(method, copy, index, num_held) for index in indices]

    try:
        below({0, num_own // 2, num_own - 1})
    except Exception:  # noqa: BLE001 - what a class does with a copy of itself is its own affair
        return None
    return fields[name], below


def _asked(method: Callable[..., Any], copy: Any, index: int, length: int) -> int:
    try:
        method(copy, index)
    except _Asked as asked:
        try:
            found = int(asked.index.__index__())
        except (AttributeError, TypeError):
            raise IndexError(index) from None
        if -length <= found < length:
            return found % length
    raise IndexError(index)


def _of_library(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in _LIBRARIES


def _holder(fields: dict[str, Any]) -> str | None:
    """The one field that holds a data set; None where none does, or several do."""
    from torch.utils.data import Dataset, IterableDataset

    sized = {
        name: one for name, one in fields.items() if hasattr(one, "__getitem__") and hasattr(one, "__len__")
    }
    known = [
        n for n, one in sized.items() if isinstance(one, Dataset) and not isinstance(one, IterableDataset)
    ]
    found = known or [name for name, one in sized.items() if not _of_library(type(one))]
    return found[0] if len(found) == 1 else None


def _plain(code: CodeType, holder: str, fields: Iterable[str]) -> bool:
    """Whether all that runs until the holder is asked reads fields: up to its line, or all of it where it branches."""
    allowed = {*_PLAIN, *fields}
    steps = list(dis.get_instructions(code))
    lines = [step.positions.lineno if step.positions else None for step in steps]
    first = next((n for n, step in enumerate(steps) if step.argval == holder and _names(step)), None)
    if first is None:
        return False
    last = max(n for n, line in enumerate(lines) if line == lines[first])
    if any(step.opcode in dis.hasjrel or step.opcode in dis.hasjabs for step in steps[:last]):
        last = len(steps)
    # What is asked for next would depend on what was asked for before.
    if any(step.opname in _WRITES for step in steps[: last + 1]):
        return False
    return all(step.argval in allowed for step in steps[: last + 1] if _names(step)) and not code.co_cellvars


def _names(step: dis.Instruction) -> bool:
    return step.opcode in dis.hasname
