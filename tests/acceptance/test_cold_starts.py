"""The torchrun command comes to the same verdicts as warm ranks, and its time is held against its own.

A run is held against runs that were started as it was: imports count in both, or in neither.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from grader.catalog.submissions.submission_selection import load_selected
from grader.catalog.tasks.task_folders import load_task, reference
from grader.evaluate.files.measurement_files import write_stored
from grader.evaluate.time import calibration as calibrations
from grader.judging.judge import regrade
from grader.model.grade import ItemState
from grader.model.run_options import Options
from grader.model.task import RubricItem, Target, Task
from grader.pipeline import Pipeline
from grader.promises.verification import Reuse, Verification, verify
from grader.settings import settings

COLD = Options(dataset="digits", launcher="torchrun")


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """The toy, whose run takes a fraction of what its imports take, with a time target of its own."""
    monkeypatch.setenv("GRADER_STATE_DIR", str(tmp_path / "state"))
    settings.cache_clear()
    toy = load_task("ddp-toy")
    item = RubricItem("speed", "Fast enough", 10.0, must=False, requires=(), metric="time")
    # Neighbours may cost a factor; started otherwise it would be ten and more.
    target = Target("time", factor=4.0)
    return replace(toy, rubric=(*toy.rubric, item), targets=(*toy.targets, target))


def test_a_cold_run_is_held_against_cold_ones_alone(task: Task, tmp_path: Path) -> None:
    chosen = reference(task).submission
    with Pipeline("process") as pipeline:
        warm = pipeline.calibration(pipeline.setting(task, Options(dataset="digits")))
        attempt, workspace = pipeline.grade(task, chosen, options=COLD, out=tmp_path / "cold")
        cold = calibrations.load(pipeline.setting(task, COLD))
        assert calibrations.load(pipeline.setting(task, Options(dataset="digits"))) == warm
    assert cold is not None
    assert attempt.calibration == cold
    assert (warm.launcher, cold.launcher, cold.provisional) == ("fork", "torchrun", True)
    speed = next(item for item in attempt.grade.rubric if item.id == "speed")
    assert speed.state is ItemState.EARNED
    assert "cold start" in speed.reason
    assert any("torchrun command, and so was the reference" in note for note in attempt.grade.notes)
    assert any("grader calibrate ddp-toy --cold" in note for note in attempt.grade.notes)
    # As attempts were stored before launchers were told apart: what they were held against was measured warm.
    write_stored(workspace.calibration, replace(warm, launcher=""))
    again = regrade(workspace, task)
    assert again.calibration is None
    assert again.grade.metrics["time_target_s"] is None
    assert next(item for item in again.grade.rubric if item.id == "speed").state is ItemState.NOT_SHOWN


@pytest.mark.parametrize(
    ("name", "promise"),
    [
        ("ddp-toy", "accepted/flat_script"),
        ("ddp-toy", "rejected/never_wrapped"),
        ("ddp-toy", "crashed/exception_on_one_rank"),
        ("ddp-toy", "deadlocked/collective_on_rank_zero"),
        ("gradient-averaging", "crashed/order_of_a_set"),
    ],
)
def test_promises_hold_however_ranks_start(name: str, promise: str) -> None:
    """One of each ending; `grader verify --cold` tries all."""
    todo = [(task, promised) for task, promised in load_selected((name,)) if promised.name == promise]
    how = Verification(replace(COLD, timed=False), "process", Reuse.NEVER)
    (case,) = verify(todo, how, lambda _sign: None, lambda _case: None)
    assert case.ok, case.message
