"""A task with a tiny network, a data set of noise in the right layout, and one real scorer for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from grader.catalog.idx import images_bytes, labels_bytes
from grader.evaluate.evaluator import Evaluator
from grader.model.dataset import PreparedDataset
from grader.model.task import Limits, Profile, RubricItem, Target, Task
from grader.run.workspace import Workspace

EVALUATE = """\
import torch
from torch import nn

print("noise on standard output")


def build_model():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 10), nn.BatchNorm1d(10))


def evaluate(model, images, labels):
    assert images.dtype == torch.uint8 and images.shape[1:] == (28, 28) and labels.dtype == torch.int64
    assert not model.training
    logits = model(images.float().unsqueeze(1) / 255)
    loss = nn.functional.cross_entropy(logits, labels).item()
    return {"accuracy": (logits.argmax(1) == labels).double().mean().item(), "loss": loss}
"""

NUM_HIDDEN, NUM_VALIDATION = 51, 33
CPU = Profile("cpu", "gloo", 2, 1, Limits(60, 1 << 30, 1 << 28, 1 << 22))
GPU = Profile("gpu", "nccl", 4, 1, Limits(60, 1 << 30, 1 << 28, 1 << 22))


def write_split(raw: Path, num: int, seed: int) -> None:
    """Noise whose first pixel tells the label, so that a known network scores all of it."""
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 50, (num, 28, 28), dtype=np.uint8)
    labels = rng.integers(0, 10, num)
    images[np.arange(num), 0, labels] = 255
    raw.mkdir(parents=True, exist_ok=True)
    (raw / "t10k-images-idx3-ubyte").write_bytes(images_bytes(images))
    (raw / "t10k-labels-idx1-ubyte").write_bytes(labels_bytes(labels))


def make_task(folder: Path, rubric: tuple[RubricItem, ...] = (), must: tuple[str, ...] = ()) -> Task:
    """A loaded task, built by hand."""
    return Task(
        name="tiny",
        title="Tiny",
        lab="Lab 0",
        summary="A tiny task.",
        folder=folder,
        skeleton=folder,
        version="1" * 64,
        launcher="fork",
        entry_point="train.py",
        datasets=("noise",),
        checks=(),
        must=must,
        profiles=(CPU, GPU),
        targets=(Target("accuracy", at_least={"noise": 0.9}), Target("time", factor=1.5)),
        rubric=rubric,
        statement="",
    )


@pytest.fixture(scope="session")
def tiny_task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    """A task whose network is one linear layer and a batch norm."""
    folder = tmp_path_factory.mktemp("tiny")
    (folder / "evaluate.py").write_text(EVALUATE)
    return make_task(folder)


@pytest.fixture(scope="session")
def noise_data(tmp_path_factory: pytest.TempPathFactory) -> PreparedDataset:
    """Splits that the network of `perfect_state` classifies without fault."""
    root = tmp_path_factory.mktemp("data")
    write_split(root / "visible" / "FashionMNIST" / "raw", NUM_VALIDATION, 1)
    write_split(root / "hidden" / "FashionMNIST" / "raw", NUM_HIDDEN, 2)
    return PreparedDataset("noise", "1", root / "visible", root / "hidden", 0, NUM_VALIDATION, NUM_HIDDEN)


@pytest.fixture(scope="session")
def evaluator() -> Iterator[Evaluator]:
    """One scorer, asked by all tests, however badly the one before treated it."""
    with Evaluator(wall_s=30) as scorer:
        yield scorer


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """An attempt's folder with an empty output folder."""
    made = Workspace(tmp_path / "attempt")
    made.outputs.mkdir(parents=True)
    return made
