"""A task with a tiny network and a data set of noise that it can learn by heart."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from grader.idx import images_bytes, labels_bytes
from grader.model.metric import ACCURACY
from grader.model.task import Limits, Profile, RubricItem, Target, Task

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

NUM_HIDDEN, NUM_VALIDATION, NUM_TRAIN = 51, 33, 21
CPU = Profile("cpu", "gloo", 2, 1, Limits(60, 1 << 30, 1 << 28, 1 << 22))
GPU = Profile("gpu", "nccl", 4, 1, Limits(60, 1 << 30, 1 << 28, 1 << 22))


def write_split(raw: Path, num: int, seed: int, part: str = "t10k") -> None:
    """Noise whose first pixel tells the label, so that a known network scores all of it."""
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 50, (num, 28, 28), dtype=np.uint8)
    labels = rng.integers(0, 10, num)
    images[np.arange(num), 0, labels] = 255
    raw.mkdir(parents=True, exist_ok=True)
    (raw / f"{part}-images-idx3-ubyte").write_bytes(images_bytes(images))
    (raw / f"{part}-labels-idx1-ubyte").write_bytes(labels_bytes(labels))


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
        metrics=(ACCURACY,),
        targets=(Target("accuracy", levels={"noise": 0.9}), Target("time", factor=1.5)),
        rubric=rubric,
        statement="",
    )
