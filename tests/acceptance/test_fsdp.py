"""The large model of `fsdp`: a rank that holds all of its training goes over the limit, a rank with a part does not."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import nn

from grader.catalog.submissions.learner_files import read_submission
from grader.catalog.tasks.task_folders import load_task
from grader.evaluate.files.weight_files import MAX_BYTES
from grader.model.grade import Verdict
from grader.model.run_options import Options
from grader.model.submission import Submission
from grader.pipeline import Pipeline
from tests import promised
from tests.acceptance.conftest import CHECKOUT

TASK = load_task("fsdp")
GPU = next(p for p in TASK.profiles if p.name == "gpu")


@dataclass(frozen=True, slots=True)
class Training:
    """What a rank's part of training holds between two steps, bytes."""

    weights: int
    gradients: int
    optimizer: int

    @property
    def all(self) -> int:
        return self.weights + self.gradients + self.optimizer


@pytest.fixture
def skeleton(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setenv("MODEL_SIZE", GPU.model_size)
    return imported(CHECKOUT / "skeletons" / "fsdp" / "train.py")


def imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"fsdp_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shapes(model: nn.Module) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in model.state_dict().items()}


def num_bytes(tensors: Iterator[torch.Tensor], ranks: int = 1) -> int:
    """Of one rank's part, as FSDP2 cuts: along the first dimension, the last part filled up to the others' length."""
    return sum(
        -(-len(t) // ranks) * t[0].numel() * t.element_size() if t.dim() else t.element_size()
        for t in tensors
    )


def one_step(model: nn.Module, ranks: int = 1) -> Training:
    """The account of a real step of Adam, taken where tensors have shapes and no memory."""
    optimizer = torch.optim.Adam(model.parameters())
    nn.functional.cross_entropy(
        model(torch.empty(16, 1, 28, 28, device="meta")), torch.zeros(16, dtype=torch.long, device="meta")
    ).backward()
    optimizer.step()
    state = [t for values in optimizer.state.values() for t in values.values()]
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    return Training(
        num_bytes(model.parameters(), ranks),
        num_bytes(iter(gradients), ranks),
        num_bytes(iter(state), ranks),
    )


def test_a_replica_does_not_fit_and_a_quarter_does(skeleton: ModuleType) -> None:
    with torch.device("meta"):
        model = skeleton.ResidualMLP()
    limit = skeleton.GPU_MIB << 20
    num_params = sum(p.numel() for p in model.parameters())
    whole, part = one_step(model), one_step(model, GPU.nproc_per_node)
    assert whole.all == pytest.approx(16 * num_params, rel=1e-3)
    assert whole.all > 1.1 * limit
    # Weights alone have to fit, as they are there before they are cut.
    assert whole.weights < limit / 2
    # Beside its part a rank holds, at worst at once: this block and the one that is fetched ahead, the gradients of a
    # block twice while they are dealt out, and the copies of its part that Adam computes in.
    block = num_bytes(model.blocks[0].parameters())
    assert part.all + 4 * block + 2 * part.weights < 0.75 * limit


@pytest.mark.parametrize("size", ["small", "large"])
def test_the_scorer_has_the_network_that_is_trained(
    size: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MODEL_SIZE", size)
    evaluate = imported(CHECKOUT / "tasks" / "fsdp" / "evaluate.py")
    with torch.device("meta"):
        expected = shapes(evaluate.build_model(size))
        scripts = [promised.script("fsdp", name, tmp_path) for name in promised.promises("fsdp")]
        for path in [CHECKOUT / "skeletons" / "fsdp" / "train.py", *scripts]:
            assert shapes(imported(path).ResidualMLP()) == expected, path


def test_its_checkpoint_is_small_enough_to_be_kept_and_read(skeleton: ModuleType) -> None:
    with torch.device("meta"):
        weights = num_bytes(skeleton.ResidualMLP().parameters())
    assert weights + (1 << 20) < min(MAX_BYTES, GPU.limits.output_bytes)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("handed_in", "verdict"),
    [
        (read_submission(CHECKOUT / "skeletons" / "fsdp"), Verdict.OUT_OF_MEMORY),
        (promised.submission("fsdp", "accepted/fully_shard"), Verdict.ACCEPTED),
        (promised.submission("fsdp", "rejected/ddp_unchanged"), Verdict.REJECTED),
    ],
    ids=["skeleton", "fully_shard", "ddp_unchanged"],
)
def test_on_gpus(handed_in: Submission, verdict: Verdict, tmp_path: Path) -> None:
    if torch.cuda.device_count() < GPU.nproc_per_node:
        pytest.skip(f"{torch.cuda.device_count()} CUDA devices of {GPU.nproc_per_node}")
    options = Options(profile="gpu", dataset="digits")
    with Pipeline() as pipeline:
        attempt, _ = pipeline.grade(TASK, handed_in, options=options, out=tmp_path)
    assert attempt.grade.verdict is verdict, attempt.grade.verdict_reason
