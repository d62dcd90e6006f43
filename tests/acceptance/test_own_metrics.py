"""A task without images, classes or accuracy: its own metrics decide, are told, drawn and exported; by real runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from grader.catalog.data.own_datasets import prepare
from grader.catalog.tasks.task_folders import load_task
from grader.cli.printing import print_calibration
from grader.judging.attempt import Attempt
from grader.judging.judge import regrade
from grader.model.calibration import Calibration, StyleTiming
from grader.model.finding import Severity
from grader.model.grade import ItemState, Verdict
from grader.model.run_options import Options
from grader.model.submission import SourceFile, Submission
from grader.pipeline import Pipeline
from grader.report.audience import Audience, for_audience
from grader.report.exports import gradescope, junit, markdown
from grader.report.html.attempt_page import to_html
from grader.report.json_report import from_json, to_json
from grader.run.workspace import Workspace
from grader.settings import settings
from tests.own_metrics import SCRIPT, write_course

Judged = tuple[Attempt, Workspace]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def grade(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Judged]]:
    """Judges the accepted script with some of its text changed."""
    home = tmp_path_factory.mktemp("forecast")
    write_course(home)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADER_TASKS_DIR", str(home / "tasks"))
        patch.setenv("GRADER_SKELETONS_DIR", str(home / "skeletons"))
        patch.setenv("GRADER_STATE_DIR", str(home / "state"))
        settings.cache_clear()
        task = load_task("forecast")
        prepare(task)
        with Pipeline("process") as pipeline:

            def judge(name: str, *changes: tuple[str, str]) -> Judged:
                text = SCRIPT.read_text()
                for old, new in changes:
                    assert old in text
                    text = text.replace(old, new)
                submission = Submission(name, (SourceFile("train.py", text),))
                return pipeline.grade(
                    task, submission, options=Options(timed=False), out=home / "attempts" / name
                )

            yield judge
    settings.cache_clear()


@pytest.fixture(scope="module")
def accepted(grade: Callable[..., Judged]) -> Judged:
    return grade("accepted")


@pytest.fixture(scope="module")
def missed(grade: Callable[..., Judged]) -> Judged:
    """Weights that come near, and a report of another count."""
    shrink = "        torch.save("
    return grade(
        "missed",
        (shrink, f"        model.module.weight.data.mul_(0.85)\n{shrink}"),
        ("val_mse = (", "val_mse = 3 * ("),
    )


def items(attempt: Attempt) -> dict[str, tuple[ItemState, float]]:
    return {item.id: (item.state, item.earned) for item in attempt.grade.rubric}


def test_targets_in_both_directions_decide(accepted: Judged) -> None:
    attempt, _ = accepted
    assert attempt.grade.verdict is Verdict.ACCEPTED, attempt.grade.verdict_reason
    metrics = attempt.grade.metrics
    assert 0.005 < (metrics["mse"] or 0) < (metrics["mse_target"] or 0) == 0.05
    assert (metrics["close"] or 0) >= (metrics["close_target"] or 0) == 0.9
    assert "accuracy" not in metrics
    assert attempt.record is not None
    days_per_s = 5 * 512 / attempt.record.wall_s
    assert (metrics["samples_per_s"] or 0) > 2 * days_per_s, "a row of a batch is a day of two readings"
    check = next(check for check in attempt.grade.checks if check.code == "EVAL007")
    assert "Reported 0.0" in check.reason
    assert any("metrics.json reports `patience`" in note for note in attempt.grade.notes)
    assert not any(f.severity is Severity.REVIEW for f in attempt.grade.findings)


def test_what_misses_a_target_by_little_earns_a_part_and_a_false_report_is_told(missed: Judged) -> None:
    attempt, _ = missed
    assert attempt.grade.verdict is Verdict.REJECTED
    assert items(attempt)["error"] == (ItemState.PARTLY, 20.0)
    assert items(attempt)["shares"] == (ItemState.EARNED, 40.0)
    (finding,) = (f for f in attempt.grade.findings if f.code == "EVAL007")
    assert "a validation mean squared error of" in finding.message
    assert "on the same 256 samples" in finding.message


def test_the_report_speaks_of_the_tasks_metrics_and_samples(accepted: Judged, missed: Judged) -> None:
    attempt, _ = accepted
    page = to_html(attempt, {})
    for words in (
        "Mean squared error on unseen data",
        "at most 0.050 K²",
        "plot-metric-mse",
        "Share of close forecasts on unseen data",
        "readings per second",
    ):
        assert words in page
    for attempt, _ in (accepted, missed):
        texts = [to_html(attempt, {}), *(form.of_grade(attempt.grade, Audience.LEARNER) for form in FORMS)]
        told = [check.reason for check in attempt.grade.checks]
        assert not [
            word for word in ("images", "accuracy is") for text in (*texts[1:], *told) if word in text
        ]


FORMS = (gradescope, junit, markdown)


def test_a_learner_reads_steps_for_the_worse_and_staff_what_was_measured(missed: Judged) -> None:
    attempt, _ = missed
    told = for_audience(attempt.grade, Audience.LEARNER)
    exact, coarse = attempt.grade.metrics["mse"], told.metrics["mse"]
    assert exact is not None
    assert coarse is not None
    assert 0 <= coarse - exact < 0.005
    assert f"Mean squared error {coarse:.3f} K² on 256 hidden samples" in told.verdict_reason
    assert told.metrics["bias"] is None, "what evaluate() says beside its metrics is for staff"
    assert from_json(to_json(attempt.grade, Audience.STAFF)) == attempt.grade
    error, close = json.loads(gradescope.of_grade(attempt.grade, Audience.LEARNER))["leaderboard"]
    assert error == {"name": "Mean squared error", "value": coarse, "order": "asc"}
    assert close["order"] == "desc"


def test_the_same_files_are_judged_alike_again(missed: Judged) -> None:
    attempt, workspace = missed
    assert to_json(regrade(workspace).grade, Audience.STAFF) == to_json(attempt.grade, Audience.STAFF)


def test_a_calibration_shows_a_column_for_each_metric(
    accepted: Judged, capsys: pytest.CaptureFixture[str]
) -> None:
    style = StyleTiming("accepted/a", (1.0, 2.0), {"mse": (0.0101, 0.0102), "close": (1.0, 0.98)})
    made = Calibration("forecast", "", "cpu", "forecast", 2, "here", (style,), None, None, False, 0.1, "now")
    print_calibration(made, accepted[0].task, Path("x.json"), as_json=False)
    shown = capsys.readouterr().out
    assert "mean squared error" in shown
    assert "0.010 K² 0.010 K²" in shown
