"""What the text alone says of a task's items: untouched skeletons lack something, and what is right lacks nothing."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import replace

import pytest

from grader.catalog.submissions.learner_files import read_submission
from grader.catalog.tasks.task_folders import load_task
from grader.checks.rubric_step import RubricStep, Sight
from grader.model.finding import Finding, Severity
from grader.model.submission import ENTRY_POINT, SourceFile, Submission
from grader.model.task import Task
from grader.report.findings.cards import COSTS
from grader.report.findings.readiness import readiness_view
from grader.report.findings.reading import read_for
from tests.promised import CHECKOUT, promises, text

TASKS = sorted(path.parent.name for path in (CHECKOUT / "tasks").glob("*/task.toml"))
ACCEPTED = [(task, name) for task in TASKS for name in promises(task) if name.startswith("accepted/")]
WRITTEN_OTHERWISE = "tests/checks/fixtures/readiness"


@functools.cache
def _task(name: str) -> Task:
    return load_task(name)


def _steps(task: str, script: str) -> dict[str, RubricStep]:
    return {one.item.id: one for one in read_for(_task(task), _submission(script)).steps}


def _submission(script: str) -> Submission:
    return Submission("mine", (SourceFile(ENTRY_POINT, script),))


def _skeleton(task: str) -> str:
    (file,) = read_submission(_task(task).skeleton).files
    return file.text


def _lacking(steps: tuple[RubricStep, ...]) -> dict[str, tuple[tuple[str, str], ...]]:
    return {one.item.id: one.says for one in steps if one.lacking}


@pytest.mark.parametrize("task", TASKS)
def test_untouched_skeleton_lacks_something_and_is_told_what_to_write(task: str) -> None:
    steps = read_for(_task(task), read_submission(_task(task).skeleton)).steps
    lacking = [one for one in steps if one.item.must and one.sight is Sight.NOT_FOUND]
    assert lacking
    assert all(sentence for one in lacking for _, sentence in one.says)


@pytest.mark.parametrize("task", TASKS)
def test_skeleton_with_other_comments_is_still_the_skeleton(task: str) -> None:
    skeleton = _skeleton(task)
    commented = skeleton.replace("import os\n", "import os  # to begin with\n\n\n") + "\n# done\n"
    before = {name: (one.sight, len(one.says)) for name, one in _steps(task, skeleton).items()}
    assert {name: (one.sight, len(one.says)) for name, one in _steps(task, commented).items()} == before


@pytest.mark.parametrize(("task", "name"), ACCEPTED)
def test_nothing_is_missing_from_what_is_accepted(task: str, name: str) -> None:
    assert _lacking(read_for(_task(task), promises(task)[name].submission).steps) == {}


def _otherwise() -> Iterator[tuple[str, str]]:
    for path in sorted((CHECKOUT / WRITTEN_OTHERWISE).glob("*/*.py")):
        yield path.parent.name, path.name


@pytest.mark.parametrize(("task", "name"), list(_otherwise()))
def test_nothing_is_missing_from_what_is_right_in_an_unusual_way(task: str, name: str) -> None:
    submission = read_submission(CHECKOUT / WRITTEN_OTHERWISE / task / name)
    assert _lacking(read_for(_task(task), submission).steps) == {}


def test_each_thing_is_missing_until_it_is_written() -> None:
    """The lab's own order: a group, the wrapper, shares, a new order in each epoch, one writer."""
    script = _skeleton("ddp-fashion")
    kept = {"process-group", "gradients", "partition", "reshuffle", "checkpoint"}

    def lacking() -> set[str]:
        return set(_lacking(read_for(_task("ddp-fashion"), _submission(script)).steps))

    assert lacking() == kept
    script = script.replace(
        "device = torch.device(",
        'import torch.distributed as dist\n\ndist.init_process_group("gloo")\ndevice = torch.device(',
        1,
    )
    assert lacking() == kept - {"process-group"}
    script = script.replace(
        "model = WideResNet().to(device)",
        "model = nn.parallel.DistributedDataParallel(WideResNet().to(device))",
    )
    assert lacking() == kept - {"process-group", "gradients"}
    script = script.replace(
        "train_loader = DataLoader(train_set, batch_size=BATCH_SIZE, shuffle=True)",
        "sampler = torch.utils.data.DistributedSampler(train_set)\n"
        "train_loader = DataLoader(train_set, batch_size=BATCH_SIZE, sampler=sampler)",
    )
    assert lacking() == {"reshuffle", "checkpoint"}
    script = script.replace("    model.train()\n", "    sampler.set_epoch(epoch)\n    model.train()\n")
    assert lacking() == {"checkpoint"}
    script = script.replace(
        "os.makedirs(os.environ", "if dist.get_rank() != 0:\n    raise SystemExit\nos.makedirs(os.environ", 1
    )
    assert lacking() == set()


def test_what_only_a_run_measures_is_left_to_the_run() -> None:
    steps = _steps("ddp-fashion", text("ddp-fashion", "accepted/distributed_sampler"))
    assert steps["accuracy"].sight is Sight.RUN
    assert steps["even-steps"].sight is Sight.RUN
    assert steps["gradients"].sight is Sight.SEEN
    assert "DistributedDataParallel" in steps["gradients"].says[0][1]


def test_a_framework_is_not_accused_of_what_it_does_by_itself() -> None:
    script = "from accelerate import Accelerator\n" + _skeleton("ddp-fashion")
    assert "gradients" not in _lacking(read_for(_task("ddp-fashion"), _submission(script)).steps)


def test_a_finding_stands_at_the_item_that_it_costs() -> None:
    flawed = read_for(_task("multi-node"), read_submission(_task("multi-node").skeleton))
    assert "IO009" in dict(_lacking(flawed.steps)["once-per-machine"])
    assert {one.item.id: one.sight for one in flawed.steps}["data"] is Sight.RUN, "a hint doubts its shares"
    saves = text("ddp-fashion", "accepted/distributed_sampler").replace("if rank == 0:", "if True:")
    assert _steps("ddp-fashion", saves)["checkpoint"].sight is Sight.NOT_FOUND


def test_file_that_no_line_names_is_not_written() -> None:
    script = _skeleton("single-gpu").replace("EPOCHS = 5", "EPOCHS = 6")
    steps = _steps("single-gpu", script)
    assert steps["throughput"].sight is Sight.NOT_FOUND
    assert "`throughput.csv` and `memory.csv`" in steps["throughput"].says[0][1]
    half = _steps("single-gpu", script + '\nopen("throughput.csv", "w")\n')
    assert half["throughput"].sight is Sight.RUN
    assert "`memory.csv`" in half["states"].says[0][1]


def test_what_does_not_parse_has_no_steps() -> None:
    reading = read_for(_task("ddp-toy"), _submission("def (:\n"))
    assert [one.code for one in reading.findings] == ["SYNTAX"]
    assert reading.steps == ()


def test_task_without_skeleton_is_read_all_the_same() -> None:
    task = replace(_task("gradient-descent"), skeleton=CHECKOUT / "nowhere")
    steps = read_for(task, _submission(_skeleton("gradient-descent"))).steps
    assert {one.sight for one in steps} == {Sight.RUN}


PLAIN_DEVICE = """
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = DistributedDataParallel(nn.Linear(10, 5).to(device))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    optimizer.zero_grad()
    loss = model(torch.randn(20, 10, device=device)).pow(2).mean()
    loss.backward()
    optimizer.step()
    print("loss", loss.item())
"""


def _findings(script: str, profile: str) -> dict[str, Finding]:
    return {one.code: one for one in read_for(_task("ddp-toy"), _submission(script), profile).findings}


def test_findings_are_as_grave_as_what_they_come_to_in_the_task() -> None:
    on_cpus = _findings(PLAIN_DEVICE, "cpu")
    assert {code: one.severity for code, one in on_cpus.items()} == {
        "DIST002": Severity.WARNING,  # the task makes it cost points
        "DEV001": Severity.HINT,  # its item is left out where there are no GPUs
    }, "who prints is nothing that this task judges"
    assert on_cpus["DIST002"].details[COSTS] == (
        "−5.6 of 5.6 points for “The group is taken down at the end”",
    )
    on_gpus = _findings(PLAIN_DEVICE, "gpu")
    assert on_gpus["DEV001"].severity is Severity.ERROR
    assert on_gpus["DEV001"].details[COSTS] == ("−10 of 10 points for “Each rank has a device of its own”",)


def test_the_closing_line_agrees_with_the_findings_above_it() -> None:
    for profile, said in (("cpu", "1 item above costs points"), ("gpu", "1 finding above must be fixed")):
        reading = read_for(_task("ddp-toy"), _submission(PLAIN_DEVICE), profile)
        assert said in readiness_view(reading.steps, reading.findings).summary


def test_items_are_worth_what_they_are_worth_there_and_what_cannot_show_is_not_asked() -> None:
    for profile, total in (("cpu", 7), ("gpu", 8)):
        steps = read_for(_task("ddp-toy"), _submission(PLAIN_DEVICE), profile).steps
        assert len(steps) == total
        assert sum(one.item.points for one in steps) == pytest.approx(100)


@pytest.mark.parametrize(("task", "name"), ACCEPTED)
def test_no_must_is_missing_from_what_is_accepted(task: str, name: str) -> None:
    findings = read_for(_task(task), promises(task)[name].submission).findings
    assert [one.code for one in findings if one.severity is Severity.ERROR] == []


def test_what_only_a_run_that_stops_can_show_costs_nothing_in_advance() -> None:
    script = text("ddp-toy", "accepted/local_rank_argument")
    assert _findings(script, "cpu")["DIST007"].severity is Severity.HINT
