"""What `grader worker` and `grader relay` say before they start, where they should not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.worker.rig import CHECKOUT


def grader(folder: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "grader", *arguments],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), "GRADER_STATE_DIR": str(folder), **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("command", ["worker", "relay"])
def test_a_database_without_our_tables(tmp_path: Path, command: str) -> None:
    done = grader(tmp_path, command)
    assert done.returncode == 4
    assert "grader db upgrade" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [("--slots", "0"), ("--name", "a/b"), ("--no-cpu", "--no-gpus")],
    ids=["no slots", "a path", "nothing to take"],
)
def test_what_no_worker_can_be(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert grader(tmp_path, "db", "upgrade").returncode == 0
    done = grader(tmp_path, "worker", *arguments)
    assert done.returncode == 2
    assert done.stderr


def test_a_broker_that_is_none(tmp_path: Path) -> None:
    assert grader(tmp_path, "db", "upgrade").returncode == 0
    for command in ("relay", "worker"):
        done = grader(tmp_path, command, GRADER_BROKER_URL="amqp://somewhere")
        assert done.returncode == 2
        assert "redis://" in done.stderr
