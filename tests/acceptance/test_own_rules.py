"""A course with a rule, a diagnosis and an examination of its own: all of them judge, and none can break the judge."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import Cli
from tests.plugins.conftest import DIAGNOSIS, RULE

pytestmark = pytest.mark.slow

COURSE = Path(__file__).parent / "fixtures" / "by_hand_course"
Told = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def course(tmp_path: Path, cli_env: dict[str, str]) -> Path:
    """The course's folder of tasks, with the rule and the diagnosis that docs/plugins.md shows."""
    tasks = tmp_path / "by-hand" / "tasks"
    shutil.copytree(COURSE, tasks.parent)
    for folder, name, text in (
        ("rules", "house001_debugging_print.py", RULE),
        ("diagnoses", "no_course_file.py", DIAGNOSIS),
    ):
        (tasks / folder).mkdir()
        (tasks / folder / name).write_text(text)
    cli_env["GRADER_TASKS_DIR"] = str(tasks)
    cli_env["GRADER_SKELETONS_DIR"] = str(tasks.parent / "skeletons")
    return tasks


@pytest.fixture
def told(cli: Cli) -> Told:
    def run(*arguments: str | Path) -> tuple[int, dict[str, Any]]:
        done = cli(*arguments, "--json")
        assert "Traceback" not in done.stderr
        return done.returncode, json.loads(done.stdout)

    assert cli("data", "prepare", "digits").returncode == 0
    return run


def test_a_course_is_proved_with_what_is_its_own(course: Path, told: Told) -> None:
    code, proof = told("course", "check")
    assert (code, proof["problems"], proof["unproved"]) == (0, [], [])
    assert {case["submission"]: case["codes"] for case in proof["cases"]} == {
        "accepted/left_in.py": ["HOUSE001"],
        "accepted/ring.py": [],
        "crashed/asks_for_a_file.py": [],
        "held/another_name.py": [],
        "rejected/library_call.py": ["EVAL010"],
    }

    submissions = course / "sum-by-hand" / "submissions"
    _, grade = told("grade", "sum-by-hand", submissions / "rejected" / "library_call.py")
    (item,) = (one for one in grade["rubric"] if one["id"] == "by-hand")
    assert item["reason"] == "Rank 0 calls `all_reduce` at train.py:10."


def test_what_is_its_own_and_fails_costs_no_learner_anything(course: Path, told: Told, cli: Cli) -> None:
    rule, diagnosis = (
        course / "rules" / "house001_debugging_print.py",
        course / "diagnoses" / "no_course_file.py",
    )
    rule.write_text(
        RULE.replace("    if not evidence.logs:", "    exit(evidence.nothing)\n    if not evidence.logs:")
    )
    diagnosis.write_text(DIAGNOSIS.replace('title="There is no such course file"', "title=None"))
    submissions = course / "sum-by-hand" / "submissions"
    for name, code, verdict, said in (
        ("accepted/ring.py", 0, "accepted", f"no attribute 'nothing' ({rule}:"),
        ("crashed/asks_for_a_file.py", 1, "crashed", f"({diagnosis}:"),
    ):
        status, grade = told("grade", "sum-by-hand", submissions / name, "--staff")
        assert (status, grade["verdict"]) == (code, verdict)
        assert any(said in finding["message"] for finding in grade["findings"]), (
            "staff are told, with the line"
        )
        assert grade["diagnosis"] is None or grade["diagnosis"]["id"] != "no_course_file"

    # Its author is told by the proof, with file and line, and so is who judges at the command line.
    done = cli("grade", "sum-by-hand", submissions / "accepted" / "ring.py")
    assert f"no attribute 'nothing' ({rule}:" in done.stderr
    status, proof = told("verify", "sum-by-hand", "--only", "ring")
    (case,) = proof["cases"]
    assert (status, case["ok"]) == (1, False)
    assert f"no attribute 'nothing' ({rule}:" in case["message"]

    evaluate = course / "sum-by-hand" / "evaluate.py"
    evaluate.write_text(evaluate.read_text().replace('if "sum.pt" in left:', "if True:"))
    done = cli("grade", "sum-by-hand", submissions / "accepted" / "ring.py", "--out", "out")
    assert done.returncode == 3
    assert "evaluate.py:16: KeyError: 'sum.pt'" in done.stderr
    assert not (course.parent.parent / "out").exists(), "it is refused before anything runs"


@pytest.mark.usefixtures("docker_images")
def test_the_account_of_a_run_crosses_into_the_scorers_container(course: Path, told: Told) -> None:
    code, proof = told("verify", "sum-by-hand", "--only", "ring", "--runtime", "docker")
    assert code == 0, proof["cases"]
    assert [case["verdict"] for case in proof["cases"]] == ["accepted"]
