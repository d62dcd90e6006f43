"""`grader new task` writes a task that proves itself as it is, in a checkout of its own, by real runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from grader.settings import settings
from tests.acceptance.conftest import CHECKOUT, Cli


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of tasks that holds nothing yet, for this process and those that it starts."""
    monkeypatch.setenv("GRADER_TASKS_DIR", str(tmp_path / "tasks"))
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
    assert sum(name.startswith("deadlocked/") for name in written["submissions"]) == 1
    texts = [path.read_text() for path in elsewhere.rglob("*") if path.is_file()]
    assert any("grader verify first-steps" in text for text in texts)
    assert not any("{{" in text and "}}" in text for text in texts)

    cases = json.loads(run(cli, "verify", "first-steps", "--json", "--no-containers").stdout)
    kept = {case["submission"]: case["ok"] for case in cases["cases"]}
    assert len(kept) == len(written["submissions"])
    assert all(kept.values()), cases
    skeleton = elsewhere / "tasks" / "first-steps" / "skeleton" / "train.py"
    assert Path(written["skeleton"]) == skeleton.parent
    grade = run(cli, "grade", "first-steps", skeleton, "--json", "--out", elsewhere / "attempt", accept=1)
    told = json.loads(grade.stdout)
    left = json.loads((elsewhere / "attempt" / "outputs" / "metrics.json").read_text())
    assert left["schema"] == 1
    assert all(0 < epoch["val_accuracy"] <= 1 for epoch in left["epochs"])
    assert told["verdict"] == "rejected"
    assert {"DIST001", "DATA001"} <= {finding["code"] for finding in told["findings"]}


HOUSE = ("test_statements.py", "test_words.py", "test_modules.py", "test_near_copies.py")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """This checkout as a newcomer would have it: what is committed or would be, in a repository of its own."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    for name in subprocess.check_output(listed, cwd=CHECKOUT, text=True).split("\0"):
        if (CHECKOUT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(CHECKOUT / name, tmp_path / name)
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    return tmp_path


def test_a_new_task_passes_the_house_rules_untouched(checkout: Path) -> None:
    own = {**os.environ, "PYTHONPATH": str(checkout)}
    own = {
        name: value for name, value in own.items() if name not in ("GRADER_TASKS_DIR", "GRADER_SKELETONS_DIR")
    }

    def run(*command: object) -> str:
        program = [sys.executable, "-m", *map(str, command)]
        done = subprocess.run(program, cwd=checkout, env=own, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("grader", "new", "task", "my-task")
    run("ruff", "check", "tasks", "skeletons")
    run("ruff", "format", "--check", "tasks", "skeletons")
    told = run(
        "pytest", "-p", "no:cacheprovider", "-rA", *(checkout / "tests" / "house" / name for name in HOUSE)
    )
    assert "PASSED tests/house/test_statements.py::test_targets_to_be_reached_are_told[my-task]" in told


def test_nothing_is_overwritten_and_names_are_checked(elsewhere: Path, cli: Cli) -> None:
    run(cli, "new", "task", "mine")
    statement = elsewhere / "tasks" / "mine" / "statement.md"
    statement.write_text("# My own\n")
    assert "is there already" in run(cli, "new", "task", "mine", accept=2).stderr
    assert statement.read_text() == "# My own\n"
    assert "is no name for a task" in run(cli, "new", "task", "../mine", accept=2).stderr
    assert "is no title" in run(cli, "new", "task", "other", "--title", 'a "b"', accept=2).stderr
    assert sorted(path.name for path in (elsewhere / "tasks").iterdir()) == ["mine"]
