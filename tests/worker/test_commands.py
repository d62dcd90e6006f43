"""What `grader worker` and `grader relay` say before they start, where they should not."""

from __future__ import annotations

import json
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
    [
        ("--slots", "0"),
        ("--name", "a/b"),
        ("--no-cpu", "--no-gpus"),
        ("--exit-when-idle", "0"),
        ("--server", "https://grader.example.edu", "--slots", "2"),
        ("--server", "http://grader.example.edu", "--exit-when-idle", "120", "--until", "1767268800"),
    ],
    ids=["no slots", "a path", "nothing to take", "no time", "no token", "plain http"],
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


def test_tokens_of_workers_are_issued_listed_and_revoked(tmp_path: Path) -> None:
    assert grader(tmp_path, "tokens", "list").returncode == 4, "there is no database yet"
    assert grader(tmp_path, "db", "upgrade").returncode == 0
    issued = grader(tmp_path, "tokens", "issue", "cluster", "--days", "180")
    assert issued.returncode == 0, issued.stderr
    token = issued.stdout.strip()
    again = grader(tmp_path, "tokens", "issue", "cluster")
    assert (again.returncode, again.stdout) == (2, "")
    assert "revoke it first" in again.stderr
    assert grader(tmp_path, "tokens", "issue", "a/b").returncode == 2
    (listed,) = json.loads(grader(tmp_path, "tokens", "list", "--json").stdout)["tokens"]
    assert (listed["name"], listed["used_at"]) == ("cluster", None)
    assert token.startswith(listed["prefix"])
    assert token not in json.dumps(listed)
    assert [grader(tmp_path, "tokens", "revoke", "cluster").returncode for _ in range(2)] == [0, 1]
    assert "no tokens" in grader(tmp_path, "tokens", "list").stdout
