"""What tasks' `evaluate.py` take from the package: right numbers, and there wherever a scorer runs."""

from __future__ import annotations

import ast
import runpy
from pathlib import Path

import pytest
import torch
from torch import nn

from grader.evaluate.classifier import accuracy_and_loss
from grader.evaluate.small_convnet import SmallConvNet
from grader.run.image_context import context_of


@pytest.mark.parametrize("num_samples", [1, 256, 600])
def test_each_sample_counts_once(num_samples: int) -> None:
    inputs = torch.randn(num_samples, 3, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(num_samples) % 3
    model = nn.Sequential(nn.Dropout(0.9), nn.Identity())
    found = accuracy_and_loss(model, inputs, labels)
    assert found["accuracy"] == (inputs.argmax(dim=1) == labels).double().mean().item()
    assert found["loss"] == pytest.approx(nn.functional.cross_entropy(inputs, labels).item(), rel=1e-5)
    assert not model.training


def test_every_tasks_file_finds_in_the_image_what_it_imports(repository: Path) -> None:
    there = context_of("evaluate").files
    starter = repository / "grader" / "catalog" / "starter" / "evaluate.py.txt"
    for path in [*repository.glob("tasks/*/evaluate.py"), starter]:
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("grader"):
                assert f"code/{node.module.replace('.', '/')}.py" in there, path


@pytest.mark.parametrize("task", ["large-batch", "multi-node"])
def test_a_network_that_tasks_share_fits_the_weights_of_their_skeletons(task: str, repository: Path) -> None:
    skeleton = runpy.run_path(str(repository / "skeletons" / task / "train.py"))
    SmallConvNet().load_state_dict(skeleton["Net"]().state_dict())
