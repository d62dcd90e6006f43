"""The `[data]` table: named data sets, or the task's own data and how that is made.

Says to the author where keys don't make sense together; nothing is prepared here.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.catalog.formats.problems import close_to
from grader.catalog.formats.toml_lines import Key
from grader.model.own_data import IMAGES, DataFile, OwnData
from grader.model.syntax_tree import parse_text

if TYPE_CHECKING:
    from grader.catalog.tasks.task_schema import TaskFile

_SCRIPT = ".py"
PREPARE = "prepare"
"""The function that a script defines: `prepare(out, source, seed)`."""


def own_data(parsed: TaskFile, task: str) -> OwnData | None:
    """The task's own data; None where it is judged on sets that everybody knows."""
    table = parsed.data
    if not table.prepare:
        return None
    files = tuple(DataFile(name, file.sha256, file.url) for name, file in table.files.items())
    return OwnData(table.name or task, table.prepare, files, table.source)


def dataset_names_of(parsed: TaskFile, task: str) -> tuple[str, ...]:
    """Names of the data sets that the task is judged on, in order of preference."""
    own = own_data(parsed, task)
    return (own.name,) if own is not None else tuple(parsed.data.datasets or ())


def has_images(parsed: TaskFile) -> bool:
    """Whether scripts and scorer read images in FashionMNIST's layout."""
    return parsed.data.prepare in ("", IMAGES)


def names(raw: dict[str, Any], known: tuple[str, ...], task: str) -> tuple[list[str], list[tuple[Key, str]]]:
    """Names of the task's data sets from the raw file, and what is wrong with them.

    Args:
        known: data sets that everybody can prepare. task: its name.
    """
    table = raw.get("data")
    if not isinstance(table, dict):
        return [], []
    named, prepare = table.get("datasets"), table.get("prepare")
    if not isinstance(prepare, str):
        wanted = [n for n in named if isinstance(n, str)] if isinstance(named, list) else []
        if named is None:
            text = (
                'is missing. Write `datasets = ["digits"]`, or `prepare = "prepare.py"` for data of your own.'
            )
            return [], [(("data",), f"data.datasets: {text}")]
        found: list[tuple[Key, str]] = [
            (("data", key), f"data.{key}: is about data that the task brings along; add `prepare`.")
            for key in ("name", "source", "files")
            if key in table
        ]
        for name in wanted:
            if name not in known:
                hint = close_to(name, frozenset(known))
                text = f"data.datasets: there is no data set {name!r}{hint}. There are {', '.join(known)}."
                found.append((("data", "datasets"), text))
        return wanted, found
    given = table.get("name")
    own = given if isinstance(given, str) else task
    found = []
    if named is not None:
        text = "data.datasets: `prepare` makes the task's own data; remove one of the two."
        found.append((("data", "datasets"), text))
    if own in known:
        text = f"data.name: everybody's data set is called {own}; write another name."
        found.append((("data", "prepare" if own == task else "name"), text))
    if "permute_labels" in table and prepare != IMAGES:
        text = "data.permute_labels: only images with labels have numbers to permute; remove it."
        found.append((("data", "permute_labels"), text))
    return [own], found


def folder_problems(folder: Path, own: OwnData | None) -> list[str]:
    """What is wrong with the script that makes the data."""
    if own is None or not own.prepare.endswith(_SCRIPT):
        return []
    path = folder / own.prepare
    if not path.is_file():
        return [f"{own.prepare}: is missing; it defines `{PREPARE}(out, source, seed)`."]
    try:
        tree = parse_text(path.read_bytes())
    except (SyntaxError, ValueError) as error:
        return [f"{own.prepare}:{getattr(error, 'lineno', None) or 1}: does not parse: {error}."]
    if not any(isinstance(n, ast.FunctionDef) and n.name == PREPARE for n in tree.body):
        return [f"{own.prepare}: defines no function `{PREPARE}(out, source, seed)`; add it."]
    return []
