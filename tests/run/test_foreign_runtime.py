"""A package with a runtime of its own runs the conformance suite as docs/plugins.md says, and its faults are found."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SOUND = """
from grader.run.runtimes.process import ProcessRuntime


class SlurmRuntime(ProcessRuntime):
    name = "slurm"
"""
LOSES_EXIT_CODES = f"""{SOUND}
    def run(self, job, workspace, on_progress):
        import json
        super().run(job, workspace, on_progress)
        record = json.loads(workspace.record.read_text())
        for rank in record["ranks"]:
            rank["exit_code"] = rank["exit_code"] and 1
        workspace.record.write_text(json.dumps(record))
"""


def documented_lines() -> str:
    """The test code that docs/plugins.md shows."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "plugins.md").read_text(encoding="utf-8")
    (code,) = re.findall(
        r"^```python\n(from grader\.run\.conformance.*?)^```$", page, re.MULTILINE | re.DOTALL
    )
    return str(code)


def run_suite(
    folder: Path, repository: Path, runtime: str, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Lay out a package with a test file beside it and run that from its own folder."""
    tests = folder / "tests"
    tests.mkdir()
    (folder / "slurm_runtime.py").write_text(runtime)
    (tests / "test_conformance.py").write_text(documented_lines())
    # Nothing of the tests that this runs in, such as the number of its worker.
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env=variables | {"PYTHONPATH": os.pathsep.join((str(folder), str(repository)))},
        capture_output=True,
        text=True,
        timeout=500,
    )


def test_a_sound_runtime_of_a_package_passes(tmp_path: Path, repository: Path) -> None:
    # Three of the suite; the whole of it runs over the package's own runtimes, which this one is but for its name.
    done = run_suite(tmp_path, repository, SOUND, "-k", "exit_codes or exit_handlers or own_modules")
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout
    assert "skipped" not in done.stdout


def test_one_that_loses_exit_codes_fails(tmp_path: Path, repository: Path) -> None:
    done = run_suite(tmp_path, repository, LOSES_EXIT_CODES, "--exitfirst")
    assert done.returncode == 1, done.stdout
    assert "::test_exit_codes_are_the_kernels" in done.stdout
    # Assertions of the package show their values as those of a test file do.
    assert "assert [1, 1, 1, 1] == [3, 9, -11, -9]" in done.stdout
