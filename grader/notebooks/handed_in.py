"""The scripts in a notebook that was handed in: of its cells those that say which file they belong to.

`%%writefile train.py` writes a file, `%%writefile -a train.py` adds to it, as in Jupyter; a cell that begins with
`# grader: train.py` belongs to that file and may be run in the notebook as well. Everything else is passed over. The
line that names the file becomes a comment that says which cell begins there, so that every line can be told by cell.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto

from grader.errors import UsageError
from grader.model.notebook_lines import cell_mark
from grader.model.submission import ENTRY_POINT, SourceFile
from grader.notebooks.cells import code_cells
from grader.notebooks.magics import without_magics
from grader.readers import OverLimitError, ReadingLimits, read

SUFFIX = ".ipynb"
MAX_NOTEBOOK_BYTES = 32 << 20
"""Of a file, pictures in its outputs and all: none of them is kept."""
CLEAR = "Clear its outputs (in JupyterLab: Edit, Clear Outputs of All Cells), save it, and hand it in again."
"""What to do about one that is too large."""
_LIMITS = ReadingLimits(cpu_s=3.0, wall_s=10.0)
_MAX_NAME_BYTES = 200
_FILE = re.compile(r"(?:[\w-][\w.-]*/){0,7}[\w-][\w.-]*\.py")
_WRITES = ("%%writefile", "%%file")
_APPENDS = ("-a", "--append")
_MARK = re.compile(r"#\s*grader:\s*(\S+)\s*")


def is_notebook(name: str) -> bool:
    """Whether a file of this name is read as a notebook."""
    return name.lower().endswith(SUFFIX)


class _Way(Enum):
    WRITTEN = auto()
    ADDED = auto()
    MARKED = auto()


@dataclass(frozen=True, slots=True)
class _Part:
    """What a cell gives to a file: the cell's number, the way it says so, its lines after the one that does."""

    cell: int
    path: str
    way: _Way
    lines: tuple[str, ...]


def scripts_in(content: bytes, name: str) -> tuple[SourceFile, ...]:
    """The `.py` files of a notebook, sorted by path; `name`: the notebook's, for messages and for the cells' marks.

    Raises:
        UsageError: it is no notebook, or its files cannot be told; says what to do.
        BusyError: the machine has too much else to do to read it.
    """
    if len(content) > MAX_NOTEBOOK_BYTES:
        raise UsageError(f"{name} is larger than a notebook may be, {MAX_NOTEBOOK_BYTES >> 20} MiB. {CLEAR}")
    try:
        return read(_scripts, content, name, limits=_LIMITS)
    except OverLimitError as error:
        raise UsageError(f"{name} could not be read within {error.limit}. {CLEAR}") from None


def _scripts(content: bytes, name: str) -> tuple[SourceFile, ...]:
    files: dict[str, list[_Part]] = {}
    for number, source in code_cells(content, name):
        if (part := _part(number, source, name)) is not None:
            files.setdefault(part.path, []).append(part)
    if not files:
        raise UsageError(
            f"{name} has no cell that says which file it is. Begin the cell that holds your script with the line "
            f"`%%writefile {ENTRY_POINT}`; or, where several cells make up the script, begin each of them with the "
            f"line `# grader: {ENTRY_POINT}`."
        )
    return tuple(SourceFile(path, _text(name, parts)) for path, parts in sorted(files.items()))


def _part(cell: int, source: str, name: str) -> _Part | None:
    lines = source.replace("\r\n", "\n").split("\n")
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    words = lines[first].split()
    mark = _MARK.fullmatch(lines[first].strip())
    if mark is not None:
        way, target = _Way.MARKED, mark[1]
    elif words and words[0] in _WRITES:
        way = _Way.ADDED if any(word in _APPENDS for word in words[1:]) else _Way.WRITTEN
        target = " ".join(word for word in words[1:] if word not in _APPENDS).strip("'\"")
    else:
        return None
    path = target.removeprefix("./")
    if _FILE.fullmatch(path) is None or len(path.encode()) > _MAX_NAME_BYTES:
        if way is not _Way.MARKED and not path.endswith(".py") and not set(path) & {"$", "{"}:
            # A file besides, such as data or settings.
            return None
        raise UsageError(
            f"Cell {cell} of {name} names the file {target[:80]!r}. Name a Python file beside the notebook, without "
            f"variables and blanks: {ENTRY_POINT}, or a module that it imports."
        )
    # Blank lines before the first are kept: no line of the cell changes its number.
    return _Part(cell, path, way, ("",) * first + tuple(lines[first + 1 :]))


def _text(name: str, parts: list[_Part]) -> str:
    path, ways = parts[0].path, {part.way for part in parts}
    written = [part.cell for part in parts if part.way is _Way.WRITTEN]
    if _Way.MARKED in ways and len(ways) > 1:
        raise UsageError(
            f"Of {name}, cells {_listed(parts)} belong to {path}, some by `%%writefile` and some by `# grader:`. Use "
            "one of the two for all of them."
        )
    if len(written) > 1:
        raise UsageError(
            f"Cells {' and '.join(map(str, written))} of {name} each write {path} anew. Delete all but the one that "
            f"counts, or let the later ones add to it: `%%writefile -a {path}`."
        )
    if parts[0].way is _Way.ADDED:
        raise UsageError(
            f"Cell {parts[0].cell} of {name} adds to {path}, and no cell before it writes that file. Begin the first "
            f"of its cells with `%%writefile {path}`."
        )
    text = ""
    for part in parts:
        lines = without_magics(part.lines) if part.way is _Way.MARKED else part.lines
        text += "\n".join((cell_mark(part.cell, name), *lines)).rstrip("\n") + "\n"
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(
            f"Cell {parts[0].cell} of {name} holds half a character, which no file can hold. Type that line anew."
        ) from None
    return text


def _listed(parts: list[_Part]) -> str:
    return ", ".join(str(part.cell) for part in parts)
