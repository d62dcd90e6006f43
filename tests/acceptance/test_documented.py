"""Commands that the documentation tells a reader to type and that no other test types: they do what it says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.conftest import CHECKOUT, Cli

pytestmark = pytest.mark.slow


def test_grader_demo_names_three_reports(cli: Cli, tmp_path: Path) -> None:
    done = cli("data", "prepare", "digits")
    assert done.returncode == 0, done.stderr
    done = cli("demo", "--out", "reports", timeout_s=400)
    assert done.returncode == 0, done.stdout + done.stderr
    reports = sorted((tmp_path / "reports").glob("*/report.html"))
    assert [path.parent.name.partition("-")[0] for path in reports] == ["accepted", "deadlocked", "rejected"]
    told = done.stdout.replace("\n", "")
    assert all(path.parent.name in told for path in reports)


def test_grader_calibrate_measures_reference_times(cli: Cli) -> None:
    done = cli("calibrate", "ddp-toy", "--runs", "1", "--json", timeout_s=500)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)


def test_grader_pool_lists_containers(cli: Cli) -> None:
    done = cli("pool", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["schema"] == 1


@pytest.mark.parametrize(
    "module", [("tests.bench", "M4"), ("tests.libraries", "--every", "20", "--json")], ids=lambda m: m[0]
)
def test_python_m(module: tuple[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *module],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip()
