"""Lines of a script that came from a notebook, told as its author knows them: by cell.

A comment in the script says where each cell begins, so wherever the text goes, into a container, a database or an old
attempt, its lines can be told. The comment takes the place of the line that named the file: no other line moves.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Any, TypeVar, cast

from grader.model.finding import Location
from grader.model.fix import Fix
from grader.model.submission import Submission

_BEGIN = "# %% cell "
_MARK = re.compile(_BEGIN + r"(\d{1,5}) of .*\.ipynb", re.IGNORECASE)
_PLACE = re.compile(r"(?<![\w./-])([\w./-]+\.py):(\d{1,7})\b")

_T = TypeVar("_T")


def cell_mark(cell: int, notebook: str) -> str:
    """The comment that stands for the first line of a cell; cells are counted from 1, those with text among them."""
    return f"{_BEGIN}{cell} of {''.join(letter for letter in notebook if letter.isprintable())}"


def cell_line(submission: Submission, path: str, line: int) -> tuple[int, int] | None:
    """The cell that a line comes from, and the line's number in it; None for a line of a script of its own."""
    begins = _cells(submission.text(path) or "")
    index = bisect_right(begins, (line, 1 << 20)) - 1
    return (begins[index][1], line - begins[index][0] + 1) if index >= 0 else None


def cell_text(cell: int, line: int) -> str:
    """`cell 4, line 12`."""
    return f"cell {cell}, line {line}"


def told_place(submission: Submission, path: str, line: int) -> str:
    """`train.py:41`, or `cell 4, line 12` where it comes from a notebook."""
    found = cell_line(submission, path, line)
    return f"{path}:{line}" if found is None else cell_text(*found)


def shown_number(submission: Submission, path: str, line: int) -> int:
    """The number that stands beside a line: in its cell, where it comes from one."""
    found = cell_line(submission, path, line)
    return line if found is None else found[1]


def by_cell(told: _T, submission: Submission) -> _T:
    """The same with the lines of notebooks told by cell, in its texts and in its places."""
    if not any(_cells(file.text) for file in submission.files):
        return told
    return cast(_T, _by_cell(told, submission))


def _by_cell(told: Any, submission: Submission) -> Any:
    match told:
        # Edits are made in the text as it is.
        case Enum() | Fix():
            return told
        case str():
            return _PLACE.sub(lambda found: told_place(submission, found[1], int(found[2])), told)
        case Location():
            found = cell_line(submission, told.path, told.line)
            return told if found is None else replace(told, cell=cell_text(*found))
        case tuple() | list():
            return type(told)(_by_cell(one, submission) for one in told)
        case dict():
            return {name: _by_cell(value, submission) for name, value in told.items()}
    if not is_dataclass(told) or isinstance(told, type):
        return told
    return replace(told, **{f.name: _by_cell(getattr(told, f.name), submission) for f in fields(told)})


@lru_cache(maxsize=64)
def _cells(text: str) -> tuple[tuple[int, int], ...]:
    """(first line, cell) of each, in the text's order."""
    if not text.startswith(_BEGIN):
        return ()
    lines = re.split(r"\r\n|\r|\n", text)
    marks = ((number, _MARK.fullmatch(line)) for number, line in enumerate(lines, start=1))
    return tuple((number, int(mark[1])) for number, mark in marks if mark is not None)
