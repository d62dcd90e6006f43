"""Commands, exports and pages of the package itself: found by folder, held against their shape, refused in words."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from grader.errors import InfraError
from grader.web.routes import load_routes
from tests.plugins.conftest import CHECKOUT, Grader

EXPORT = '''\
"""Findings as a table of tabs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from grader.checks.lint import LintedScript

HELP = "write the findings as a table, too"


def of_lint(scripts: Sequence[LintedScript]) -> str:
    """A line per finding."""
    return "".join(f"{script.source.name}\\t{one.code}\\n" for script in scripts for one in script.findings)
'''


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package that a test may change."""
    ignored = shutil.ignore_patterns("__pycache__", "static", "migrations")
    shutil.copytree(CHECKOUT / "grader", tmp_path / "copy" / "grader", ignore=ignored)
    return tmp_path / "copy"


def change(path: Path, instead_of: str, written: str) -> str:
    """Write something else; `path:line` of it."""
    text = path.read_text()
    assert text.count(instead_of) == 1
    path.write_text(text.replace(instead_of, written))
    return f"{path}:{text[: text.index(instead_of)].count(chr(10)) + 1}"


def test_broken_commands_and_exports(copy: Path, grader: Grader) -> None:
    commands, exports = copy / "grader" / "cli" / "commands", copy / "grader" / "report" / "exports"
    misspelled = change(commands / "rule.py", "ORDER =", "ODER =")
    changed = change(
        commands / "rules.py", "def run(args: argparse.Namespace)", "def run(given: argparse.Namespace)"
    )
    taken = change(commands / "tasks.py", 'NAME = "tasks"', 'NAME = "rules"')
    done = grader("--help", "--json", package=copy)
    assert done.returncode == 4
    assert f"{misspelled}: `ODER`: did you mean `ORDER`?" in done.stderr
    assert f"{changed}: `run`: write `def run(args: Namespace) -> int`" in done.stderr
    assert f"{taken.rpartition(':')[0]}:1: the name rules is taken by {commands}/rules.py" in done.stderr
    assert json.loads(done.stdout)["error"]["kind"] == "InfraError"
    assert "Traceback" not in done.stdout + done.stderr
    done = grader("rules", package=copy)
    assert done.returncode == 4
    assert f"{changed}: `run`" in done.stderr
    assert grader("compare", "--help", package=copy).returncode == 0, (
        "one that is right need not wait for others"
    )

    for name in ("rule", "rules", "tasks"):
        shutil.copy(CHECKOUT / "grader" / "cli" / "commands" / f"{name}.py", commands)
    unknown = change(commands / "course" / "check.py", 'NAME = "check"', 'NAMES = "check"')
    done = grader("course", package=copy)
    assert f"{unknown}: `NAMES`: did you mean `NAME`?" in done.stderr
    shutil.copy(CHECKOUT / "grader" / "cli" / "commands" / "course" / "check.py", commands / "course")

    unknown = change(exports / "junit.py", "def of_grade(", "def of_grades(")
    done = grader("lint", "--help", package=copy)
    assert done.returncode == 4
    assert f"{unknown}: `of_grades`: did you mean `of_grade`?" in done.stderr


def test_a_broken_runtime(copy: Path, tasks: Path, grader: Grader) -> None:
    runtimes = copy / "grader" / "run" / "runtimes"
    misspelled = change(runtimes / "process.py", "RUNTIME =", "RUNTIMES =")
    done = grader("doctor", "--json", package=copy)
    assert done.returncode == 4
    assert f"{misspelled}: `RUNTIMES`: did you mean `RUNTIME`?" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr

    shutil.copy(CHECKOUT / "grader" / "run" / "runtimes" / "process.py", runtimes)
    misspelled = change(runtimes / "process.py", "    def release(", "    def relase(")
    done = grader("doctor", "--json", package=copy)
    assert done.returncode == 4
    assert f"`RUNTIME`: {misspelled}: `relase`: did you mean `release`?" in done.stdout


def test_a_format_is_a_file(copy: Path, grader: Grader, tmp_path: Path) -> None:
    (copy / "grader" / "report" / "exports" / "tabs.py").write_text(EXPORT)
    (tmp_path / "train.py").write_text("import torch.distributed as dist\ndist.init_process_group('nccl')\n")
    help_text = grader("lint", "--help", package=copy).stdout
    assert "--tabs FILE" in help_text
    assert "write the findings as a table, too" in help_text
    done = grader("lint", "train.py", "--tabs", "found.tsv", "--exit-zero", package=copy)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "found.tsv").read_text() == "train.py\tDIST002\n"
    assert "--tabs" not in grader("verify", "--help", package=copy).stdout


def test_broken_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = '"""A page."""\nfrom fastapi import APIRouter\n\nrouter = APIRouter()\n'
    answer = '\n\n@router.get("/{}")\ndef page() -> str:\n    """It."""\n    return ""\n'
    folder = tmp_path / "odd_pages"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "empty.py").write_text(page)
    (folder / "first.py").write_text(page + answer.format("same"))
    (folder / "misspelled.py").write_text(page.replace("router =", "ruoter ="))
    (folder / "second.py").write_text(page + answer.format("same"))
    (folder / "silent.py").write_text(page.removeprefix('"""A page."""\n') + answer.format("silent"))
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(InfraError) as refused:
        load_routes("odd_pages")
    said = str(refused.value)
    assert f"{folder}/empty.py:4: `router`: answers nothing; put `@router.get(…)` above a function" in said
    assert f"{folder}/misspelled.py:4: `ruoter`: did you mean `router`?" in said
    assert f"{folder}/silent.py:1: has no docstring; it is the page of a page" in said
    for name in ("empty", "misspelled", "silent"):
        (folder / f"{name}.py").write_text(page + answer.format(name))
    with pytest.raises(InfraError, match=rf"second.py:1: GET /same is answered by {folder}/first.py already"):
        load_routes("odd_pages")
