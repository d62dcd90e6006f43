"""Scripts with `mp.spawn` in a task that asks for them: sound ones are accepted, mistakes told with rank and line."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from grader.catalog.tasks.task_loading import load_task_folder
from grader.errors import TaskError, UsageError
from grader.judging.attempt import Attempt
from grader.model.grade import Verdict
from grader.model.run_options import Options
from grader.model.submission import SourceFile, Submission
from grader.model.task import Task
from grader.pipeline import Pipeline
from tests.acceptance.conftest import CHECKOUT
from tests.ports import free_port

SCRIPTS = CHECKOUT / "docs" / "from-mp-spawn"
BEFORE, AFTER = ((SCRIPTS / f"{name}.py").read_text() for name in ("before", "after"))
WRAPPED = "DistributedDataParallel(build_model().to(device), device_ids=[local_rank] if use_cuda else None)"
SPAWN = "    mp.spawn(worker, nprocs=args.num_gpus, args=(args,))"
ALONE = Options(timed=False, dataset="digits", profile="cpu")
Grade = Callable[..., Attempt]


def changed(old: str, new: str, text: str = BEFORE) -> str:
    assert old in text
    return text.replace(old, new)


def lines_of(attempt: Attempt, code: str) -> set[int]:
    """Lines that findings of a rule name."""
    found = [finding for finding in attempt.grade.findings if finding.code == code]
    return {place.line for finding in found for place in finding.where if place.line}


def line_of(text: str, words: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if words in line)


def write_task(root: Path, *changes: tuple[str, str]) -> Task:
    """The task of scripts that start their ranks themselves, some lines of its file changed."""
    folder, skeleton = root / "spawning", root / "skeleton"
    shutil.copytree(CHECKOUT / "tests" / "launch" / "spawning_task", folder)
    for place in (folder / "submissions" / "accepted" / "spawns.py", skeleton / "train.py"):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(BEFORE)
    toml = folder / "task.toml"
    for old, new in changes:
        toml.write_text(changed(old, new, toml.read_text()))
    return load_task_folder(folder, skeleton)


@pytest.fixture(scope="module")
def pipeline() -> Iterator[Pipeline]:
    with Pipeline("process") as warm:
        yield warm


@pytest.fixture
def grade(pipeline: Pipeline, tmp_path: Path) -> Grade:
    """`grade(text, *changes of task.toml)`."""

    def run(text: str, *changes: tuple[str, str]) -> Attempt:
        # Others on this machine may hold the port that the page's scripts name.
        text = text.replace("29517", str(free_port()))
        submission = Submission("train", (SourceFile("train.py", text),))
        task = write_task(tmp_path, *changes)
        return pipeline.grade(task, submission, options=ALONE, out=tmp_path / "out")[0]

    return run


def test_a_sound_script_is_accepted_and_told_how_it_was_started(grade: Grade) -> None:
    attempt = grade(BEFORE)
    assert attempt.grade.verdict is Verdict.ACCEPTED, attempt.grade.verdict_reason
    assert attempt.grade.points == 100
    said = "Started as `python train.py --num-gpus 2 --num-nodes 1 --node-id 0 --target-accuracy 0.85`."
    assert said in attempt.grade.notes
    assert not {finding.code for finding in attempt.grade.findings} & {"DIST004", "DIST005", "DIST006"}


def test_the_same_script_for_torchrun_is_accepted_where_torchrun_starts_it(grade: Grade) -> None:
    torchrun = ('launcher = "python"', 'launcher = "fork"')
    attempt = grade(
        AFTER,
        torchrun,
        ('"--num-gpus", "{nproc}", "--num-nodes", "{nnodes}", "--node-id", "{node_rank}", ', ""),
    )
    assert attempt.grade.verdict is Verdict.ACCEPTED, attempt.grade.verdict_reason
    assert "Started as `torchrun --nproc_per_node=2 train.py --target-accuracy 0.85`." in attempt.grade.notes


def test_ranks_that_train_on_the_same_samples_are_told(grade: Grade) -> None:
    text = changed(
        "batch_size=args.batch_size, sampler=sampler)", "batch_size=args.batch_size, shuffle=True)"
    )
    attempt = grade(text)
    assert attempt.grade.verdict is Verdict.REJECTED, attempt.grade.verdict_reason
    assert line_of(text, "train_loader = ") in lines_of(attempt, "DATA001")


def test_ranks_that_average_nothing_are_told(grade: Grade) -> None:
    text = changed("model.module", "model", changed(WRAPPED, "build_model().to(device)"))
    attempt = grade(text)
    assert attempt.grade.verdict is Verdict.REJECTED, attempt.grade.verdict_reason
    assert line_of(text, "optimizer.step()") in lines_of(attempt, "GRAD001")


def test_ranks_that_all_write_are_told(grade: Grade) -> None:
    text = changed("    if rank == 0:\n        torch.save", "    if True:\n        torch.save")
    attempt = grade(text)
    assert attempt.grade.verdict is Verdict.REJECTED, attempt.grade.verdict_reason
    assert line_of(text, "torch.save(") in lines_of(attempt, "IO001")


def test_a_rank_that_waits_alone_is_told(grade: Grade) -> None:
    text = changed(
        "    history = []\n", "    history = []\n    if rank == 1:\n        dist.barrier()  # alone\n"
    )
    attempt = grade(text)
    assert attempt.grade.verdict is Verdict.DEADLOCKED, attempt.grade.verdict_reason
    assert attempt.grade.diagnosis is not None
    assert "Rank 1 called a collective that the others never reach" in attempt.grade.diagnosis.title
    assert line_of(text, "# alone") in lines_of(attempt, "DIST003")


def test_a_rank_that_crashes_is_told(grade: Grade) -> None:
    text = changed("    history = []\n", "    history = []\n    if rank == 1:\n        history[0]\n")
    attempt = grade(text)
    assert attempt.grade.verdict is Verdict.CRASHED, attempt.grade.verdict_reason
    line = line_of(text, "        history[0]")
    assert attempt.grade.verdict_reason == f"Rank 1 raised IndexError at train.py:{line} (exit code 1)."


def test_a_script_that_starts_too_few_is_told(grade: Grade) -> None:
    attempt = grade(changed(SPAWN, "    args.num_gpus = 1\n    worker(0, args)"))
    assert attempt.grade.verdict is Verdict.REJECTED, attempt.grade.verdict_reason
    (finding,) = [finding for finding in attempt.grade.findings if finding.code == "DIST004"]
    assert finding.message.startswith("2 ranks were asked for, but ")
    assert "nprocs=args.num_gpus" in finding.hint


def test_what_needs_gpus_is_told_or_stood_in_for(grade: Grade, tmp_path: Path) -> None:
    text = changed('"nccl" if use_cuda else "gloo"', '"nccl"')
    assert grade(text).grade.diagnosis.title == "NCCL needs GPUs, and this machine has none"  # type: ignore[union-attr]
    shutil.rmtree(tmp_path / "spawning")
    attempt = grade(
        text, ('launcher = "python"', 'launcher = "python"\nshims = ["nccl-to-gloo", "batch-norm-on-cpu"]')
    )
    assert attempt.grade.verdict is Verdict.ACCEPTED, attempt.grade.verdict_reason
    assert any(
        "`init_process_group` began gloo where the script asks for NCCL" in note
        for note in attempt.grade.notes
    )


def test_such_a_task_has_one_node_and_no_other_launcher(pipeline: Pipeline, tmp_path: Path) -> None:
    task = write_task(tmp_path)
    for options in (replace(ALONE, launcher="torchrun"), replace(ALONE, nnodes=2)):
        with pytest.raises(UsageError, match="start their ranks themselves"):
            pipeline.setting(task, options)


def test_its_author_is_told_of_nodes_and_of_placeholders_that_stand_for_nothing(tmp_path: Path) -> None:
    with pytest.raises(TaskError) as told:
        write_task(
            tmp_path,
            ('launcher = "python"', 'launcher = "python"\nnnodes = 2'),
            ("{nproc}", "{gpus}"),
        )
    assert 'launch.nnodes: with `launcher = "python"` a script runs on one node' in str(told.value)
    assert "launch.arguments: {gpus} stands for nothing; there are {nproc}" in str(told.value)
