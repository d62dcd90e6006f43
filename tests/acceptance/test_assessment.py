"""The assessment: what the learner starts from misses both targets, sound work meets them, each step earns more."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from grader.catalog.submissions.learner_files import read_submission
from grader.catalog.submissions.promised_submissions import submissions_of
from grader.catalog.tasks.task_folders import load_task, reference
from grader.judging.attempt import Attempt
from grader.model.grade import ItemState, RubricResult, Verdict
from grader.model.run_options import Options
from grader.model.submission import Submission
from grader.pipeline import Pipeline
from tests import promised
from tests.acceptance.conftest import CHECKOUT, Cli

TASK = load_task("assessment")
LADDER = [p for p in submissions_of(TASK) if p.name.startswith("rejected/step")] + [reference(TASK)]


@pytest.fixture(scope="module")
def pipeline() -> Iterator[Pipeline]:
    with Pipeline() as warm:
        yield warm


def grade(pipeline: Pipeline, submission: Submission, out: Path) -> Attempt:
    return pipeline.grade(TASK, submission, options=Options(dataset="digits"), out=out)[0]


def item(attempt: Attempt, name: str) -> RubricResult:
    return next(result for result in attempt.grade.rubric if result.id == name)


def test_the_skeleton_under_torchrun_misses_both_targets_and_is_told_so(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    attempt = grade(pipeline, read_submission(TASK.skeleton), tmp_path / "skeleton")
    assert attempt.grade.verdict is Verdict.REJECTED
    assert attempt.grade.points == 0
    accuracy, time = item(attempt, "accuracy"), item(attempt, "time")
    assert accuracy.state is time.state is ItemState.LOST
    assert "on 359 hidden samples; at least 0.933 is asked for" in accuracy.reason
    assert "is allowed, and a time counts only for a run whose network comes near the accuracy" in time.reason
    metrics = attempt.grade.metrics
    assert metrics["time_s"] is not None
    assert metrics["time_target_s"] is not None
    assert metrics["time_s"] > metrics["time_target_s"]
    assert {"DIST001", "DATA001"} <= {f.code for f in attempt.grade.findings}


def test_a_sound_version_meets_both_targets(pipeline: Pipeline, tmp_path: Path) -> None:
    attempt = grade(pipeline, reference(TASK).submission, tmp_path / "reference")
    assert attempt.grade.verdict is Verdict.ACCEPTED
    assert item(attempt, "accuracy").state is item(attempt, "time").state is ItemState.EARNED
    assert attempt.grade.points == 100


def test_work_done_twice_is_seen_in_the_time_where_the_accuracy_is_reached(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    submission = promised.submission("assessment", "rejected/whole_set_on_every_rank")
    attempt = grade(pipeline, submission, tmp_path / "whole")
    assert item(attempt, "accuracy").state is ItemState.EARNED
    # Beside other work nothing is said of it.
    assert item(attempt, "time").state in (ItemState.LOST, ItemState.PARTLY, ItemState.NOT_SEEN)
    # A clock that runs unevenly may find it near enough for the half; never for more.
    assert item(attempt, "time").earned <= item(attempt, "time").full_points / 2
    assert attempt.grade.verdict is Verdict.REJECTED


def test_each_step_of_the_ladder_promises_more_than_the_one_before() -> None:
    # That the promises are kept is shown by running them: see test_promises.
    points = [step.points for step in LADDER if step.points is not None]
    assert len(points) == len(LADDER) == 8
    assert (points[0], points[-1]) == ((0, 0), (100, 100))
    assert all(most < least for (_, most), (least, _) in pairwise(points))


def test_points_other_than_promised_are_told(cli: Cli, cli_env: dict[str, str], tmp_path: Path) -> None:
    tasks = tmp_path / "tasks"
    shutil.copytree(CHECKOUT / "tasks" / "assessment", tasks / "assessment")
    step = tasks / "assessment" / "submissions" / "rejected" / "step7_reduced_metrics.py"
    step.write_text(step.read_text().replace("# points: 65\n", "# points: 70-80\n", 1))
    cli_env["GRADER_TASKS_DIR"] = str(tasks)
    result = cli("verify", "assessment", "--only", "step7", "--dataset", "digits")
    assert result.returncode == 1, result.stdout + result.stderr
    assert "65 points, promised 70 to 80" in " ".join(result.stdout.split())


def test_published_figures_are_shown_with_what_they_cover(cli: Cli) -> None:
    shown = " ".join(cli("tasks", "assessment").stdout.split())
    assert "never compared with times measured here" in shown
    gpu = TASK.profile("gpu")
    assert gpu is not None
    assert gpu.datasets == ("fashion-mnist",)
    assert any("300 s" in q.figure and "without validation" in q.covers for q in gpu.quoted)
