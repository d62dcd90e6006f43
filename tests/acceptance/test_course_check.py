"""`grader course check` proves a course, and says what keeps it from being one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grader.settings import settings
from tests.acceptance.conftest import Cli

Check = Callable[..., tuple[int, dict[str, Any]]]
COURSE = """\
name = "one"
title = "One task"
about = "The toy network."

[[tasks]]
task = "ddp-toy"
weight = 100
"""
KEPT = ("accepted/launcher_variables.py", "rejected/never_wrapped_same_seed.py")


@pytest.fixture
def check(tmp_path: Path, cli: Cli, cli_env: dict[str, str]) -> Check:
    """A course of the toy task with two of its submissions, to be changed and checked."""
    task = tmp_path / "tasks" / "ddp-toy"
    shutil.copytree(settings().tasks_dir / "ddp-toy", task, ignore=shutil.ignore_patterns("submissions"))
    shutil.copytree(settings().skeletons_dir / "ddp-toy", tmp_path / "skeletons" / "ddp-toy")
    for name in KEPT:
        (task / "submissions" / name).parent.mkdir(parents=True)
        shutil.copy(settings().tasks_dir / "ddp-toy" / "submissions" / name, task / "submissions" / name)
    (tmp_path / "tasks" / "course.toml").write_text(COURSE)

    def run(*arguments: str) -> tuple[int, dict[str, Any]]:
        cli_env["GRADER_TASKS_DIR"] = str(tmp_path / "tasks")
        cli_env["GRADER_SKELETONS_DIR"] = str(tmp_path / "skeletons")
        done = cli("course", "check", "--json", "--no-containers", "--dataset", "digits", *arguments)
        return done.returncode, json.loads(done.stdout)

    return run


def test_a_course_that_holds(check: Check) -> None:
    code, told = check()
    assert code == 0, told["problems"]
    assert told["ok"]
    assert not told["unproved"]
    assert [(c["submission"], c["verdict"]) for c in told["cases"]] == [
        ("accepted/launcher_variables.py", "accepted"),
        ("rejected/never_wrapped_same_seed.py", "rejected"),
    ]
    (skeleton,) = told["skeletons"]
    assert (skeleton["alone"], skeleton["verdict"], skeleton["problem"]) == ("completed", "rejected", "")


def test_a_skeleton_that_passes_a_promise_that_breaks_and_points_that_nobody_earns(
    check: Check, tmp_path: Path
) -> None:
    submissions = tmp_path / "tasks" / "ddp-toy" / "submissions"
    accepted = submissions / KEPT[0]
    shutil.copy(accepted, tmp_path / "skeletons" / "ddp-toy" / "train.py")
    shutil.copy(accepted, submissions / "rejected" / "is_right.py")
    text = accepted.read_text()
    assert "dist.destroy_process_group()" in text
    accepted.write_text(text.replace("dist.destroy_process_group()", "pass"))
    code, told = check()
    assert code == 1
    assert not told["ok"]
    said = "\n".join(told["problems"])
    assert "handed in unchanged it is accepted" in said
    assert "rejected/is_right.py in process: verdict accepted, promised rejected" in said
    assert "earns all points of “The group is taken down at the end”" in said
