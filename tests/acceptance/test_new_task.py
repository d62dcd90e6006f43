"""`grader new task` writes a task that proves itself as it is, in a checkout of its own, by real runs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from grader.settings import settings
from tests.acceptance.conftest import Cli


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders of tasks and skeletons that hold nothing yet, for this process and those that it starts."""
    monkeypatch.setenv("GRADER_TASKS_DIR", str(tmp_path / "tasks"))
    monkeypatch.setenv("GRADER_SKELETONS_DIR", str(tmp_path / "skeletons"))
    settings.cache_clear()
    return tmp_path


def run(cli: Cli, *args: object, accept: int = 0) -> subprocess.CompletedProcess[str]:
    done = cli(*args)
    assert done.returncode == accept, done.stdout + done.stderr
    return done


def test_a_new_task_proves_itself_and_rejects_its_skeleton(elsewhere: Path, cli: Cli) -> None:
    written = json.loads(run(cli, "new", "task", "first-steps", "--title", "First steps", "--json").stdout)
    assert Path(written["folder"]) == elsewhere / "tasks" / "first-steps"
    assert "accepted" in {name.partition("/")[0] for name in written["submissions"]}
    assert sum(name.startswith("accepted/") for name in written["submissions"]) >= 2
    texts = [path.read_text() for path in elsewhere.rglob("*") if path.is_file()]
    assert any("grader verify first-steps" in text for text in texts)
    assert not any("{{" in text and "}}" in text for text in texts)

    cases = json.loads(run(cli, "verify", "first-steps", "--json").stdout)
    kept = {case["submission"]: case["ok"] for case in cases["cases"]}
    assert len(kept) == len(written["submissions"])
    assert all(kept.values()), cases
    skeleton = elsewhere / "skeletons" / "first-steps" / "train.py"
    told = json.loads(run(cli, "grade", "first-steps", skeleton, "--json", accept=1).stdout)
    assert told["verdict"] == "rejected"
    assert {"DIST001", "DATA001"} <= {finding["code"] for finding in told["findings"]}


def test_nothing_is_overwritten_and_names_are_checked(elsewhere: Path, cli: Cli) -> None:
    run(cli, "new", "task", "mine")
    statement = elsewhere / "tasks" / "mine" / "statement.md"
    statement.write_text("# My own\n")
    assert "is there already" in run(cli, "new", "task", "mine", accept=2).stderr
    assert statement.read_text() == "# My own\n"
    assert "is no name for a task" in run(cli, "new", "task", "../mine", accept=2).stderr
    assert "is no title" in run(cli, "new", "task", "other", "--title", 'a "b"', accept=2).stderr
    assert sorted(path.name for path in (elsewhere / "tasks").iterdir()) == ["mine"]
