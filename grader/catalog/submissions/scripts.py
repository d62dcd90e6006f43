"""Which scripts a command line names: files, folders, patterns and standard input, each read or refused by itself.

A folder with `train.py` is one submission. Below any other folder every `.py` file is a script of its own, and folders
with `train.py` are submissions again. One bad file never keeps the others from being read.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.catalog.submissions.learner_files import read_script, read_submission, script_of
from grader.errors import UsageError
from grader.model.submission import ENTRY_POINT, Submission
from grader.notebooks.handed_in import SUFFIX

STDIN = "-"


@dataclass(frozen=True, slots=True)
class NamedScript:
    """A script or submission under the name it was asked for.

    Attributes:
        name: path as given or found; a name for standard input.
        submission: its files; none where it could not be read.
        is_folder: the name is a folder, and the submission's paths lie below it.
        problem: why it could not be read, "" otherwise.
        from_stdin: it came from standard input, whatever its name.
    """

    name: str
    submission: Submission
    is_folder: bool = False
    problem: str = ""
    from_stdin: bool = False

    def file_of(self, path: str) -> str:
        """The file that a path of the submission stands for."""
        return os.path.join(self.name, path) if self.is_folder else self.name  # noqa: PTH118


@dataclass(frozen=True, slots=True)
class _Place:
    path: Path
    asked_for: bool
    problem: str = ""


def read_scripts(
    names: Sequence[str], *, stdin: Callable[[], bytes], stdin_name: str | None = None
) -> tuple[NamedScript, ...]:
    """Read everything that is named, in the order given; what is found in folders and by patterns is sorted.

    Args:
        names: paths, patterns (`*`, `?`, `[…]`, `**` for any folders) or `-` for standard input.
        stdin: called once for `-`.
        stdin_name: what to call standard input.

    Raises:
        UsageError: `-` is given twice, or `stdin_name` without it.
    """
    if names.count(STDIN) > 1:
        raise UsageError("standard input can be read once; give `-` once")
    if stdin_name is not None and STDIN not in names:
        raise UsageError("--stdin-filename names what comes from standard input; give `-` as well")
    read: list[NamedScript] = []
    places = {name: _places(name) for name in dict.fromkeys(names) if name != STDIN}
    taken = _Taken([place for found in places.values() for place in found])
    for name in dict.fromkeys(names):
        if name == STDIN:
            read.append(_standard_input(stdin, stdin_name or "stdin.py"))
        else:
            read += [_read(place) for place in places[name] if taken.first_time(place)]
    return tuple(read)


class _Taken:
    """What has been read already, so that a pattern does not bring the same file twice."""

    def __init__(self, places: Iterable[_Place]) -> None:
        self.folders = {place.path.resolve() for place in places if _is_submission(place.path)}
        self.seen: set[Path] = set()

    def first_time(self, place: _Place) -> bool:
        """Whether to read it: not read before, and no file of a submission's folder unless it was asked for."""
        if place.problem:
            return True
        path = place.path.resolve()
        if path in self.seen or (not place.asked_for and not self.folders.isdisjoint(path.parents)):
            return False
        self.seen.add(path)
        return True


def _places(name: str) -> list[_Place]:
    path = Path(name)
    if path.is_dir() and not _is_submission(path):
        found = [_Place(p, asked_for=False) for p in _scripts_below(path)]
        return found or [_Place(path, True, f"The folder {path} holds no .py file.")]
    if os.path.lexists(path) or not glob.has_magic(name):
        return [_Place(path, asked_for=True)]
    # Most notebooks hold no submission: they are read where the pattern asks for them.
    suffixes = {".py", SUFFIX} if name.endswith(SUFFIX) else {".py"}
    matches = sorted(Path(match) for match in glob.glob(name, recursive=True))  # noqa: PTH207
    found = [
        _Place(p, asked_for=False)
        for p in matches
        if _is_submission(p) or (p.suffix in suffixes and not p.is_dir())
    ]
    why = (
        f"No .py file and no folder with {ENTRY_POINT} matches {name}; it is taken relative to {Path.cwd()}."
    )
    return found or [_Place(path, True, why)]


def _scripts_below(folder: Path) -> Iterable[Path]:
    """Scripts and submissions' folders, sorted; hidden entries, caches and virtual environments are passed over."""
    for here, folders, files in os.walk(folder):
        kept = []
        for name in sorted(folders):
            path = Path(here, name)
            if name.startswith(".") or name == "__pycache__" or (path / "pyvenv.cfg").exists():
                continue
            if path.is_symlink():
                continue
            if _is_submission(path):
                yield path
            else:
                kept.append(name)
        folders[:] = kept
        yield from (Path(here, n) for n in sorted(files) if n.endswith(".py") and not n.startswith("."))


def _is_submission(path: Path) -> bool:
    return (path / ENTRY_POINT).is_file()


def _read(place: _Place) -> NamedScript:
    name, is_folder = str(place.path), _is_submission(place.path)
    try:
        if place.problem:
            raise UsageError(place.problem)
        submission = read_submission(place.path) if is_folder else read_script(place.path)
    except UsageError as error:
        return NamedScript(name, Submission(place.path.stem, ()), problem=str(error))
    return NamedScript(name, submission, is_folder)


def _standard_input(stdin: Callable[[], bytes], name: str) -> NamedScript:
    try:
        return NamedScript(name, script_of(stdin(), Path(name)), from_stdin=True)
    except UsageError as error:
        return NamedScript(name, Submission(Path(name).stem, ()), problem=str(error), from_stdin=True)
