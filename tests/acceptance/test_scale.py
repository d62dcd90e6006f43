"""The scale at its lower end, by real runs: untouched skeletons, and scripts that train nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.catalog.submissions.learner_files import read_submission
from grader.catalog.tasks.task_folders import find_tasks, load_task
from grader.judging.attempt import Attempt
from grader.model.grade import ItemState, Verdict
from grader.model.run_options import Options
from grader.model.submission import SourceFile, Submission
from grader.pipeline import Pipeline
from grader.report.html.attempt_page import to_html

# The ladder of `assessment` begins with its skeleton, and promises its points.
TASKS = [name for name in find_tasks() if name != "assessment"]
ON_SEVERAL_MACHINES = [name for name in TASKS if load_task(name).profiles[0].nnodes > 1]
ON_ONE_MACHINE = [name for name in TASKS if name not in ON_SEVERAL_MACHINES]
IDLE = """
import json, os, time
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() == 0:
    epochs = [{"train_loss": 2.0 / n, "val_loss": 2.0 / n, "val_accuracy": 0.9, "seconds": 1.0} for n in range(1, 5)]
    for epoch in epochs:
        print(epoch)
    with open(os.path.join(os.environ["OUTPUT_DIR"], "metrics.json"), "w") as file:
        json.dump({"schema": 1, "epochs": epochs}, file)
dist.barrier()
dist.destroy_process_group()
"""

HELLO = 'print("hello")\n'
GROUP = """
import torch.distributed as dist

dist.init_process_group("gloo")
dist.barrier()  # or a rank may be gone before another has connected to it
dist.destroy_process_group()
"""
STOPS = 'raise RuntimeError("no idea how to go on")\n'


@pytest.fixture(scope="module")
def pipeline() -> Iterator[Pipeline]:
    with Pipeline("process") as started:
        yield started


def judged(pipeline: Pipeline, task: str, submission: Submission, out: Path) -> Attempt:
    options = Options(dataset="digits", timed=False)
    return pipeline.grade(load_task(task), submission, options=options, out=out)[0]


def hold_skeleton(pipeline: Pipeline, name: str, out: Path) -> None:
    """It earns no more than 45, and its verdict names each missing step in the order of doing them."""
    grade = judged(pipeline, name, read_submission(load_task(name).skeleton), out).grade
    assert grade.verdict is Verdict.REJECTED
    assert grade.points <= 45
    missing = [
        item.title
        for item in grade.rubric
        if item.must and item.state in (ItemState.LOST, ItemState.PARTLY, ItemState.NOT_REACHED)
    ]
    assert missing
    places = [grade.verdict_reason.index(f"“{title}”") for title in missing]
    assert places == sorted(places)


def hold_idle(pipeline: Pipeline, name: str, out: Path) -> None:
    """It earns no more than 10."""
    grade = judged(pipeline, name, Submission("idle", (SourceFile("train.py", IDLE),)), out).grade
    assert grade.verdict is not Verdict.ACCEPTED
    assert grade.points <= 10


@pytest.mark.parametrize("name", ON_ONE_MACHINE)
def test_an_untouched_skeleton_is_told_every_step_in_the_order_of_doing_them(
    pipeline: Pipeline, name: str, tmp_path: Path
) -> None:
    hold_skeleton(pipeline, name, tmp_path / "attempt")


@pytest.mark.parametrize("name", ON_ONE_MACHINE)
def test_what_never_happened_earns_nothing_and_names_the_step_that_comes_first(
    pipeline: Pipeline, name: str, tmp_path: Path
) -> None:
    task = load_task(name)
    several = task.profiles[0].nproc_per_node > 1
    steps = [
        (
            HELLO,
            "First form a process group with `dist.init_process_group`."
            if several
            else "First train the model: ",
        )
    ]
    steps += [(GROUP, "First train the model: ")] if several else []
    for number, (text, first) in enumerate([*steps, (STOPS, "First mend what stopped the script.")]):
        script = Submission("idle", (SourceFile("train.py", text),))
        attempt = judged(pipeline, name, script, tmp_path / f"{number}")
        grade = attempt.grade
        if text != GROUP:
            assert grade.points == 0, [item.id for item in grade.rubric if item.earned]
            assert "Nothing could be verified in this attempt." in to_html(attempt), "it praises nobody"
        later = [item for item in grade.rubric if item.must and item.state is ItemState.NOT_REACHED]
        if text == HELLO and len(later) > 2:
            assert grade.verdict_reason.endswith(f"; and {len(later)} more that were not reached.")
            assert not any(item.title in grade.verdict_reason for item in later)
        for item in grade.rubric:
            if item.state is ItemState.NOT_REACHED:
                assert item.reason.count(first) == 1, item


@pytest.mark.parametrize("name", ON_ONE_MACHINE)
def test_forged_metrics_without_a_training_earn_next_to_nothing(
    pipeline: Pipeline, name: str, tmp_path: Path
) -> None:
    hold_idle(pipeline, name, tmp_path / "attempt")


@pytest.fixture(scope="module")
def in_containers(docker_images: object) -> Iterator[Pipeline]:
    """Where several machines are to be had."""
    with Pipeline("docker") as started:
        yield started


@pytest.mark.parametrize("name", ON_SEVERAL_MACHINES)
def test_an_untouched_skeleton_on_several_machines_is_told_the_same(
    in_containers: Pipeline, name: str, tmp_path: Path
) -> None:
    hold_skeleton(in_containers, name, tmp_path / "attempt")


@pytest.mark.parametrize("name", ON_SEVERAL_MACHINES)
def test_forged_metrics_on_several_machines_earn_next_to_nothing(
    in_containers: Pipeline, name: str, tmp_path: Path
) -> None:
    hold_idle(in_containers, name, tmp_path / "attempt")
