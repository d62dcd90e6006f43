"""Every submission of every task gets the verdict of its folder and exactly the codes of its header, in a real run.

They are judged by the commands that prove a course: all of its tasks, from nothing, by `grader course check`; where
only some are asked for, and of tasks that are in no course yet, by `grader verify`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from grader.catalog.course_file import load_course
from grader.catalog.promised_submissions import submissions_of
from grader.catalog.tasks import find_tasks, load_task
from grader.checks.rule import load_rules
from grader.judging.attempt_folder import open_attempt
from grader.judging.judge import regrade
from grader.model.finding import Severity
from grader.model.grade import Verdict
from grader.model.promise import PromisedSubmission
from grader.report.audience import Audience
from grader.report.json_report import to_json
from tests.acceptance.conftest import CHECKOUT
from tests.twice import AGAIN

PROMISES = [(name, promised) for name in find_tasks() for promised in submissions_of(load_task(name))]
COURSE = {item.task for item in load_course().items}
WHOLE = "test_the_whole_course_is_proved"


def runtime_of(task: str) -> str:
    return "docker" if load_task(task).profiles[0].nnodes > 1 else "process"


@dataclass(frozen=True)
class Proving:
    """Runs the commands, each where its attempts are kept; `folder`: of this test run."""

    folder: Path
    whole: bool

    @cache  # noqa: B019  one object, which lives as long as the module
    def course(self) -> dict[str, Any]:
        # Once more after a failure: promises that held have left their evidence, and only the others run.
        kept = ["--cache"] if AGAIN in os.environ else []
        return self._run("course", "check", "--jobs", "2", "--keep", str(self.folder), *kept)

    @cache  # noqa: B019
    def cases(self, task: str, path: str) -> tuple[dict[str, Any], ...]:
        """What was found about the submissions of a task, or about one alone."""
        told = (
            self.course()
            if self.whole and task in COURSE
            else self._run(
                *("verify", task, "--only", f"submissions/{path}", "--runtime", runtime_of(task)),
                *("--keep", str(self.folder / task / path)),
            )
        )
        return tuple(case for case in told["cases"] if case["task"] == task)

    def _run(self, *args: str) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-m", "grader", *args, "--dataset", "digits", "--json"],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
            capture_output=True,
            text=True,
            timeout=3600,
            check=False,
        )
        assert done.returncode in (0, 1), done.stderr[-4000:]
        assert done.stdout, done.stderr[-4000:]
        told = json.loads(done.stdout)
        assert isinstance(told, dict)
        return told


@pytest.fixture(scope="module")
def proving(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Proving:
    whole = any(item.name == WHOLE for item in request.session.items)
    return Proving(tmp_path_factory.mktemp("kept"), whole)


@pytest.mark.slow
@pytest.mark.parametrize(("task", "promised"), [pytest.param(t, p, id=f"{t}-{p.name}") for t, p in PROMISES])
def test_each_submission_keeps_its_promise(
    task: str, promised: PromisedSubmission, proving: Proving, request: pytest.FixtureRequest
) -> None:
    if runtime_of(task) == "docker" or proving.whole:
        request.getfixturevalue("docker_images")
    path = promised.path.relative_to(load_task(task).folder / "submissions").as_posix()
    (case,) = (case for case in proving.cases(task, path) if case["submission"] == path)
    assert (case["ok"], case["message"], case["skipped"]) == (True, "", "")
    (folder,) = proving.folder.rglob(f"[0-9][0-9][0-9]-{task}-{promised.name.replace('/', '-')}")
    # The same evidence judged again gives the same bytes, and every report was rendered.
    again = regrade(open_attempt(folder))
    assert to_json(again.grade, audience=Audience.STAFF) == (folder / "grade.json").read_text("utf-8")
    assert again.grade.verdict == promised.verdict
    if again.grade.verdict is Verdict.ACCEPTED:
        assert [f.code for f in again.grade.findings if f.severity is Severity.ERROR] == []
    else:
        assert again.grade.points < again.grade.max_points, "what stands against acceptance costs points, too"
    assert again.grade.verdict_reason.split()[0] in (folder / "report.html").read_text("utf-8")


@pytest.mark.slow
def test_the_whole_course_is_proved(proving: Proving, docker_images: object) -> None:
    """`grader course check`: every promise, every point within reach, every skeleton."""
    told = proving.course()
    assert (told["problems"], told["unproved"]) == ([], [])
    assert {(case["task"], case["submission"]) for case in told["cases"]} >= {
        (task, promised.path.relative_to(load_task(task).folder / "submissions").as_posix())
        for task, promised in PROMISES
        if task in COURSE
    }
    assert {skeleton["task"] for skeleton in told["skeletons"]} == COURSE


def test_every_rule_of_the_task_has_a_flawed_submission() -> None:
    # What a task picks out it shows itself; whatever can stand against acceptance is shown somewhere.
    everywhere = {code for _, promised in PROMISES for code in promised.codes}
    assert {rule.code for rule in load_rules() if rule.severity is Severity.ERROR} <= everywhere
    for name in find_tasks():
        picked = set(load_task(name).checks)
        shown = {code for task, promised in PROMISES if task == name for code in promised.codes}
        assert picked <= shown, name
