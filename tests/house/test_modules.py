"""Modules of the package stay small, explain themselves and stand where their name says."""

from __future__ import annotations

import ast
import tomllib
from functools import cache
from pathlib import Path

MAX_LINES = 300
MAX_PARAMETERS = 7
VAGUE_NAMES = {"common", "constants", "helper", "helpers", "misc", "util", "utils"}
# `launch` and `probe` live beside the learner's code and get torchrun's variables; `run` and `evaluate` make the
# environment of the processes that they start, as `readers` remembers it.
MAY_TOUCH_ENVIRONMENT = {"evaluate", "launch", "probe", "readers", "run", "settings"}


def modules(repository: Path) -> list[Path]:
    found = sorted((repository / "grader").rglob("*.py"))
    assert found, "no module found: is this the checkout?"
    return found


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_modules_stay_under_300_lines(repository: Path) -> None:
    lines = {path: path.read_text(encoding="utf-8").count("\n") for path in modules(repository)}
    long = [f"{path.relative_to(repository)}: {num} lines" for path, num in lines.items() if num > MAX_LINES]
    assert not long, f"over {MAX_LINES} lines; does each still hold one noun?\n" + "\n".join(long)


def test_every_module_says_why_it_exists(repository: Path) -> None:
    silent = [
        str(path.relative_to(repository))
        for path in modules(repository)
        if not ast.get_docstring(parsed(path))
    ]
    assert not silent, "no docstring at the top of:\n" + "\n".join(silent)


def test_no_module_is_named_after_nothing(repository: Path) -> None:
    vague = [str(path.relative_to(repository)) for path in modules(repository) if path.stem in VAGUE_NAMES]
    assert not vague, "name these after the noun they hold:\n" + "\n".join(vague)


def test_only_settings_and_the_starting_rooms_touch_the_environment(repository: Path) -> None:
    readers = []
    for path in modules(repository):
        if path.relative_to(repository / "grader").parts[0] in MAY_TOUCH_ENVIRONMENT:
            continue
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv", "environb"}:
                readers.append(f"{path.relative_to(repository)}:{node.lineno}")
    assert not readers, "configuration is read in grader/settings only:\n" + "\n".join(readers)


def test_every_package_folder_is_a_package(repository: Path) -> None:
    settings = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))
    installed = {
        file
        for package, patterns in settings["tool"]["setuptools"]["package-data"].items()
        for pattern in patterns
        for file in repository.joinpath(*package.split(".")).glob(pattern)
    }
    folders = {path.parent for path in modules(repository) if path not in installed}
    bare = [
        str(folder.relative_to(repository)) for folder in folders if not (folder / "__init__.py").is_file()
    ]
    assert not bare, "these would be missing from an installed package, add __init__.py:\n" + "\n".join(bare)


def test_no_function_takes_many_parameters(repository: Path) -> None:
    greedy = []
    for path in modules(repository):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                args = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                if len([one for one in args if one.arg not in ("self", "cls")]) > MAX_PARAMETERS:
                    greedy.append(f"{path.relative_to(repository)}:{node.lineno}: {node.name}")
    assert not greedy, "which of the parameters belong together, and what are they?\n" + "\n".join(greedy)
