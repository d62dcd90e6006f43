"""Rooms import downwards only; and the contracts that say so do bite."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

LINT = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True, verbose=True))"


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", LINT], cwd=folder, text=True, capture_output=True, timeout=120, check=False
    )


@pytest.fixture
def copy(repository: Path, tmp_path: Path) -> Path:
    """A copy of the package that a test may spoil."""
    shutil.copy(repository / "pyproject.toml", tmp_path)
    shutil.copytree(repository / "grader", tmp_path / "grader", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_contracts_are_kept(repository: Path) -> None:
    done = lint_imports(repository)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_import_that_points_up_is_caught(copy: Path) -> None:
    with (copy / "grader" / "model" / "finding.py").open("a") as module:
        module.write("\nimport grader.pipeline\n")
    done = lint_imports(copy)
    assert done.returncode != 0
    assert "grader.model.finding -> grader.pipeline" in done.stdout


def test_a_room_without_a_place_is_caught(copy: Path) -> None:
    (copy / "grader" / "attic.py").write_text('"""A room that nobody planned."""\n')
    done = lint_imports(copy)
    assert done.returncode != 0
    assert "attic" in done.stdout + done.stderr
