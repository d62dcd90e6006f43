"""Which files of this package take part in running a submission, and which in judging what it left.

Read from the imports in the text, so that there is no list to keep: a module that neither runs nor judges (pages,
queue, reports) is in neither set. Nothing is imported or executed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
_FROM = re.compile(r"^[ \t]*from (grader[\w.]*) import (\([^()]*+\)|[^\n]*)", re.MULTILINE)
_IMPORT = re.compile(r"^[ \t]*import (grader[\w.]*)", re.MULTILINE)
# Folders whose modules are found by folder or start in a process of their own, so that nobody need import them.
_SCORING = tuple(
    f"evaluate/{name}.py"
    for name in (
        "classifier",
        "evaluator",
        "scorer/container_server",
        "scorer/scorer_process",
        "small_convnet",
    )
)
_RUNNING = ("launch", "probe", "run/runtimes", *_SCORING)
# They decide what is started, how often, and which facts and reference times lie beside it. Much of what they import
# judges, and would make every rule a file that runs: of that, only what decides here is named.
_DECIDING = (
    "pipeline.py",
    "checks/run/models/traced_steps.py",
    "evaluate/time",
    "judging/attempt_folder.py",
    "judging/second_look.py",
    "model/attempt_facts.py",
    "model/run_options.py",
    "run/class_labels.py",
    "run/hash_order.py",
    "run/registry.py",
)
_JUDGING = ("checks", "judging/judge.py")


@cache
def running_files() -> frozenset[Path]:
    """Files that decide what evidence a run leaves: launch, probe, runtimes, scorer and all that these import.

    Not among them is what a second look waits for, the verdict on the first run: whoever changes a rule need not run
    everything again. Such evidence is judged without the look, or with one that nobody asks for any more.
    """
    return _closure(_below(_RUNNING)) | _below(_DECIDING)


@cache
def judging_files() -> frozenset[Path]:
    """Files that decide what is made of the evidence: checks, rubric, score and all that these import."""
    return _closure(_below(_JUDGING))


def imported_by(path: Path) -> frozenset[Path]:
    """Files of this package that a file imports itself, also where it is only for types."""
    text = path.read_text(encoding="utf-8")
    names = set(_IMPORT.findall(text))
    for module, imported in _FROM.findall(text):
        names |= {module, *(f"{module}.{name}" for name in re.findall(r"\w+", imported))}
    return frozenset(file for name in names if (file := _file(name)) is not None)


def digest(paths: Iterable[Path], root: Path = PACKAGE) -> str:
    """SHA-256 over names below `root` and contents, hex; the same for any order."""
    sha = hashlib.sha256()
    for path in sorted(paths):
        name, content = path.relative_to(root).as_posix().encode(), path.read_bytes()
        sha.update(b"%d %d\n" % (len(name), len(content)) + name + content)
    return sha.hexdigest()


def _below(parts: Iterable[str]) -> frozenset[Path]:
    found: set[Path] = set()
    for part in parts:
        path = PACKAGE / part
        found |= {path} if path.is_file() else set(path.rglob("*.py"))
    return frozenset(found)


def _closure(paths: Iterable[Path]) -> frozenset[Path]:
    """These files and all of the package that they import, directly or not, also where it is only for types."""
    found: set[Path] = set()
    waiting = list(paths)
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        waiting += imported_by(path)
    return frozenset(found)


def _file(module: str) -> Path | None:
    """The file of a module of this package; None for anything else, such as a function that was imported."""
    path = PACKAGE.parent.joinpath(*module.split("."))
    for file in (path / "__init__.py", path.with_suffix(".py")):
        if file.is_file():
            return file
    return None
