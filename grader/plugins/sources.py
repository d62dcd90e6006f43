"""Where plug-ins of a kind come from: a folder of this package, installed packages, the course's own folder.

Lists files and imports none of them, so that rooms below the plug-ins can ask what there is.
"""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

from grader.plugins.entry_points import entry_points_of, place_of
from grader.plugins.problems import PluginProblem
from grader.settings import tasks_dir


@dataclass(frozen=True, slots=True)
class Sources:
    """Where to look.

    Attributes:
        package: dotted name of a package whose modules are all plug-ins of the kind.
        group: entry points of installed packages; each names a module, or a package of nothing else. "": none.
        folder: name of a folder beside the course's tasks; "": none.
        classes: entry points name a class in a module, `module:Class`.
        rooms: packages inside the package hold plug-ins, too; else each is one itself.
    """

    package: str
    group: str = ""
    folder: str = ""
    classes: bool = False
    rooms: bool = False


RULES = Sources("grader.checks.rules", "grader.rules", "rules")
DIAGNOSES = Sources("grader.checks.diagnoses", "grader.diagnoses", "diagnoses")
RUNTIMES = Sources("grader.run.runtimes", "grader.runtimes", classes=True)
COURSE_FOLDERS = (RULES.folder, DIAGNOSES.folder)
"""Folders beside the tasks that are no tasks."""


@dataclass(frozen=True, slots=True)
class PluginFile:
    """One file that should be a plug-in.

    Attributes:
        name: of the module, without the packages above it.
        path: the file itself; a package's is its `__init__.py`.
        module: dotted name to import it by; "" for a file of the course, which lies in no package.
    """

    name: str
    path: Path
    module: str

    @property
    def of_course(self) -> bool:
        """Whether the course's author has to mend it."""
        return not self.module


def plugin_files(sources: Sources) -> tuple[PluginFile, ...]:
    """All files there are: this package's first, then installed ones, then the course's."""
    return listed(sources)[0]


def listed(sources: Sources) -> tuple[tuple[PluginFile, ...], tuple[PluginProblem, ...]]:
    """The same, with what is no plug-in and lies among them, or is named and not there."""
    in_packages, amiss = _in_packages(sources, tuple(sys.path))
    own, stray = _of_course(sources)
    return (*in_packages, *own), (*amiss, *stray)


Stamp: TypeAlias = tuple[object, ...]


def stamp(sources: Sources) -> Stamp:
    """Differs where plug-ins have to be loaded anew: another path of modules, another file of the course."""
    files = [(file.path, file.path.stat()) for file in _of_course(sources)[0]]
    own = tuple((str(path), found.st_mtime_ns, found.st_size) for path, found in files)
    # Courses without plug-ins have the same ones, so that a service loads them once for all.
    folder = tasks_dir() / sources.folder if sources.folder else None
    return (tuple(sys.path), str(folder) if folder is not None and folder.is_dir() else "", own)


def foreign_files(*kinds: Sources) -> tuple[Path, ...]:
    """Files outside this package that plug-ins of these kinds come from, with all that lie in the same package."""
    found: set[Path] = set()
    for sources in kinds:
        for file in plugin_files(sources):
            if file.of_course:
                found.add(file.path)
            elif not file.module.startswith(f"{__name__.partition('.')[0]}."):
                found.update(_neighbours(file))
    return tuple(sorted(found))


@lru_cache(maxsize=8)
def _in_packages(
    sources: Sources, _path: tuple[str, ...]
) -> tuple[tuple[PluginFile, ...], tuple[PluginProblem, ...]]:
    """What does not change while a process runs, unless somebody changes where modules are looked for."""
    found = {file.module: file for file in modules_of(sources.package, sources.rooms)}
    problems: list[PluginProblem] = []
    for entry in entry_points_of(sources.group):
        try:
            found |= {
                file.module: file for file in modules_of(entry.module if sources.classes else entry.value)
            }
        except (Exception, SystemExit) as error:  # noqa: BLE001 - finding a module runs the packages above it
            text = f"entry point `{entry.name} = {entry.value}`: {type(error).__name__}: {error}"
            problems.append(PluginProblem(*place_of(entry), text, of_course=False))
    return tuple(found.values()), tuple(problems)


def modules_of(name: str, rooms: bool = False) -> Iterator[PluginFile]:
    """A module, or the modules of a package, by name; with `rooms`, those of its packages instead of the packages.

    Raises:
        ImportError: there is none of that name; whatever a package above it raises.
    """
    spec = find_spec(name)
    if spec is None:
        raise ModuleNotFoundError(
            f"there is no module {name!r}; name a module, or a package of nothing but plug-ins"
        )
    if spec.submodule_search_locations is None:
        yield PluginFile(name.rpartition(".")[2], Path(spec.origin or name), name)
        return
    for folder in spec.submodule_search_locations:
        for info in pkgutil.iter_modules([folder]):
            if rooms and info.ispkg:
                yield from modules_of(f"{name}.{info.name}")
                continue
            path = Path(folder, info.name, "__init__.py") if info.ispkg else Path(folder, f"{info.name}.py")
            yield PluginFile(info.name, path, f"{name}.{info.name}")


def _of_course(sources: Sources) -> tuple[tuple[PluginFile, ...], tuple[PluginProblem, ...]]:
    if not sources.folder or not (folder := tasks_dir() / sources.folder).is_dir():
        return (), ()
    found: list[PluginFile] = []
    problems: list[PluginProblem] = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name == "__pycache__":
            continue
        if path.suffix == ".py" and path.is_file():
            found.append(PluginFile(path.stem, path, ""))
        else:
            text = f"a folder of {sources.folder} holds nothing else, and no task can be called so; move this away"
            problems.append(PluginProblem(path, 0, text, of_course=True))
    return tuple(found), tuple(problems)


def _neighbours(file: PluginFile) -> Iterator[Path]:
    """The file and, where it lies in a package, all modules of the topmost one: it may import any of them."""
    yield file.path
    depth = file.module.count(".") + (file.path.name == "__init__.py")
    if depth:
        yield from file.path.parents[depth - 1].rglob("*.py")
