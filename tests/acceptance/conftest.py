"""The command line as a user starts it, on a state folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]

Cli = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def state_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture
def cli_env(state_dir: Path) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if name != "GRADER_EVIDENCE_DIR"}
    return {**inherited, "GRADER_STATE_DIR": str(state_dir), "COLUMNS": "100", "NO_COLOR": "1"}


@pytest.fixture
def cli(cli_env: dict[str, str], tmp_path: Path) -> Cli:
    """Run `grader ARGS…` in an empty folder and return what it said."""

    def run(*args: str | Path, timeout_s: float = 240) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "grader", *map(str, args)],
            cwd=tmp_path,
            env={**cli_env, "PYTHONPATH": str(CHECKOUT)},
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    return run
