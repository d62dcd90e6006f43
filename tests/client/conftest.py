"""The command line against the real service on a real port, and a small proxy that lets it down on purpose."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.web.conftest import PASSWORD, School, Served, furnished, school, served

__all__ = ["PASSWORD", "School", "Served", "furnished", "school", "served"]

CHECKOUT = Path(__file__).resolve().parents[2]
Cli = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """Run `grader ARGS…` with a configuration folder of its own; keywords are environment variables."""

    def run(*args: str | Path, typed: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "grader", *map(str, args)],
            cwd=tmp_path,
            env={
                **{name: value for name, value in os.environ.items() if not name.startswith("GRADER_U")},
                "PYTHONPATH": str(CHECKOUT),
                "GRADER_CONFIG_DIR": str(tmp_path / "config"),
                "COLUMNS": "100",
                "NO_COLOR": "1",
                **variables,
            },
            input=typed,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run
