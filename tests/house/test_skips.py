"""Where everything is required, a part that is missing fails the suite; elsewhere it is skipped and said so."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SUITE = """
import pytest

def test_that_misses_a_part():
    pytest.skip("no browser here")

@pytest.mark.gpu
def test_that_misses_what_a_machine_may_lack():
    pytest.skip("no CUDA device")
"""
MODULE = """
import pytest
pytest.importorskip("a_module_that_nobody_has")
"""


@pytest.fixture
def suite(repository: Path, tmp_path: Path) -> Path:
    shutil.copy(repository / "tests" / "conftest.py", tmp_path)
    shutil.copy(repository / "pyproject.toml", tmp_path)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_parts.py").write_text(SUITE)
    return tmp_path


def run(suite: Path, require_all: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"],
        cwd=suite,
        env={**os.environ, "GRADER_REQUIRE_ALL": require_all},
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )


def test_a_missing_part_fails_where_all_are_required(suite: Path) -> None:
    done = run(suite, "1")
    assert "1 failed, 1 skipped" in done.stdout, done.stdout + done.stderr
    assert "no browser here" in done.stdout
    assert done.returncode == 1


def test_a_skipped_module_fails_where_all_are_required(suite: Path) -> None:
    (suite / "tests" / "test_module.py").write_text(MODULE)
    done = run(suite, "1")
    assert "a_module_that_nobody_has" in done.stdout, done.stdout + done.stderr
    assert done.returncode != 0


def test_elsewhere_a_missing_part_is_skipped(suite: Path) -> None:
    done = run(suite, "")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 skipped" in done.stdout
