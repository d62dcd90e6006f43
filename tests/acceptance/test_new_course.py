"""`grader new course` makes a repository that proves itself, from inside which everything means that course."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.conftest import CHECKOUT


def run(folder: Path, *args: object, accept: int = 0) -> subprocess.CompletedProcess[str]:
    """`grader ARGS…` in a folder, with no variable that says which course is meant or where its state lies."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("GRADER_")}
    done = subprocess.run(
        [sys.executable, "-m", "grader", *map(str, args)],
        cwd=folder,
        env={**own, "PYTHONPATH": str(CHECKOUT), "COLUMNS": "100", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == accept, done.stdout + done.stderr
    return done


@pytest.fixture
def course(tmp_path: Path) -> Path:
    told = json.loads(run(tmp_path, "new", "course", "my-course", "--title", "My own", "--json").stdout)
    assert Path(told["folder"]) == tmp_path / "my-course"
    return tmp_path / "my-course"


def test_a_new_course_proves_itself(course: Path) -> None:
    proof = json.loads(
        run(course / "first-task", "course", "check", "--no-time", "--keep", course / "kept", "--json").stdout
    )
    assert proof["ok"]
    assert proof["problems"] == []
    assert len(proof["cases"]) >= 6
    assert [skeleton["verdict"] for skeleton in proof["skeletons"]] == ["rejected"]
    assert (course / ".grader" / "evidence").is_dir(), "the workflows keep what lies there"
    page = (course / "kept" / "index.html").read_text()
    for case in proof["cases"]:
        assert f">{case['submission']}</a>" in page
    assert page.count("/report.html") == len(proof["cases"])


def test_a_task_is_written_into_the_course_that_one_stands_in(course: Path) -> None:
    told = run(course / "first-task" / "submissions", "new", "task", "second")
    assert f"{course}/second" in told.stdout
    assert f"add it to {course}/course.toml" in told.stdout
    assert (course / "second" / "skeleton" / "train.py").is_file()
    names = [task["name"] for task in json.loads(run(course, "tasks", "--json").stdout)]
    assert names == ["first-task", "second"]
    assert "cp second/skeleton/train.py ." in (course / "second" / "statement.md").read_text()


def test_where_there_is_no_course_it_says_what_to_do(tmp_path: Path) -> None:
    before = sorted((CHECKOUT / "tasks").iterdir())
    told = run(tmp_path, "new", "task", "second", accept=2)
    assert "`grader new course NAME`" in told.stderr
    assert sorted((CHECKOUT / "tasks").iterdir()) == before
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten(course: Path) -> None:
    assert "is there already" in run(course.parent, "new", "course", "my-course", accept=2).stderr
    assert "is no name for a course" in run(course.parent, "new", "course", "../mine", accept=2).stderr
