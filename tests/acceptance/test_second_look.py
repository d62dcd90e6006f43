"""The line that parted the ranks is named however it was written: seen by what it did, in a second run of its own."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.catalog.submissions.learner_files import read_submission
from grader.catalog.tasks.task_folders import load_task
from grader.judging.attempt import Attempt
from grader.judging.judge import regrade
from grader.model.finding import Finding
from grader.model.run_options import Options
from grader.pipeline import Pipeline
from grader.run.workspace import Workspace
from tests import promised

SCRIPT = """
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
{helpers}
dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(7)
net = nn.Sequential(nn.Linear(10, 10), nn.ReLU(), nn.Linear(10, 5))
{model}
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
generator = torch.Generator().manual_seed(rank)
for step in range(12):
    inputs, targets = torch.randn(20, 10, generator=generator), torch.randn(20, 5, generator=generator)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
{before}
    optimizer.step()
{after}
dist.destroy_process_group()
"""

WRAPPED = "model = DistributedDataParallel(net)"
BARE = "model = net"
# Case → (helpers, model, before the step, after the step, code); `# <- here` marks the line that did it.
CASES = {
    "one rank writes a flat vector back": (
        """
        def settle(net):
            flat = nn.utils.parameters_to_vector(net.parameters())
            nn.utils.vector_to_parameters(flat * 0.99, net.parameters())  # <- here
        """,
        WRAPPED,
        "",
        """
        if step == 4 and not rank:
            settle(net)
        """,
        "GRAD007",
    ),
    "noise for the gradients, of each rank's own": (
        "",
        WRAPPED,
        """
        for g, noise in ((p.grad, torch.rand(p.shape, generator=generator)) for p in net.parameters()):
            torch.add(g, noise, alpha=0.1, out=g)  # <- here
        """,
        "",
        "GRAD001",
    ),
    "biases are left out of the average": (
        """
        def share(named):
            grads = [p.grad for name, p in named if name.endswith("weight")]
            for g in grads:
                dist.all_reduce(g, op=dist.ReduceOp.SUM)  # <- here
                g /= dist.get_world_size()
        """,
        BARE,
        "share(net.named_parameters())",
        "",
        "GRAD001",
    ),
    "what is averaged is a copy": (
        "",
        BARE,
        """
        flat = torch.cat([p.grad.flatten() for p in net.parameters()])
        dist.all_reduce(flat)  # <- here
        flat /= world_size
        """,
        "",
        "GRAD001",
    ),
}


@pytest.fixture(scope="module")
def pipeline() -> Iterator[Pipeline]:
    with Pipeline("process") as warm:
        yield warm


def graded(pipeline: Pipeline, text: str, folder: Path) -> tuple[Attempt, Workspace]:
    script = folder / "train.py"
    script.write_text(text)
    return pipeline.grade(
        load_task("ddp-toy"), read_submission(script), options=Options(), out=folder / "attempt"
    )


def written(case: str) -> str:
    helpers, model, before, after, _ = CASES[case]
    inside = [textwrap.indent(textwrap.dedent(block).strip("\n"), "    ") for block in (before, after)]
    return SCRIPT.format(helpers=textwrap.dedent(helpers), model=model, before=inside[0], after=inside[1])


def found(attempt: Attempt, code: str) -> Finding:
    return next(f for f in attempt.grade.findings if f.code == code)


@pytest.mark.parametrize("case", CASES)
def test_the_line_that_did_it_is_named(case: str, pipeline: Pipeline, tmp_path: Path) -> None:
    text = written(case)
    attempt, workspace = graded(pipeline, text, tmp_path)
    assert attempt.grade.verdict == "rejected"
    line = next(n for n, one in enumerate(text.splitlines(), 1) if "# <- here" in one)
    finding = found(attempt, CASES[case][-1])
    assert line in [place.line for place in finding.where], finding.where
    assert f"`train.py:{line}`" in finding.message
    assert "In a second run" in finding.message
    # From the files alone it is judged the same.
    assert regrade(workspace).grade.findings == attempt.grade.findings


def test_a_second_look_changes_neither_verdict_nor_points(pipeline: Pipeline, tmp_path: Path) -> None:
    attempt, workspace = graded(pipeline, written("biases are left out of the average"), tmp_path)
    assert workspace.second_look.root.is_dir()
    assert not workspace.second_look.outputs.exists()
    again = Workspace(tmp_path / "without")
    workspace.root.rename(again.root)
    for path in sorted(again.second_look.root.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    again.second_look.root.rmdir()
    without = regrade(again).grade
    assert (without.verdict, without.points) == (attempt.grade.verdict, attempt.grade.points)
    assert {f.code for f in without.findings} == {f.code for f in attempt.grade.findings}
    assert "In a second run" not in found(regrade(again), "GRAD001").message


def test_what_is_accepted_is_run_once(pipeline: Pipeline, tmp_path: Path) -> None:
    attempt, workspace = graded(pipeline, promised.text("ddp-toy", "accepted/seed_003"), tmp_path)
    assert attempt.grade.verdict == "accepted"
    assert not workspace.second_look.root.exists()
