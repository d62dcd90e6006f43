"""A task that scores nothing: no weights need be left, and those that are left are held against the network."""

from __future__ import annotations

import collections
from dataclasses import replace

import pytest
import torch

from grader.evaluate.evaluator import Evaluator
from grader.model.dataset import PreparedDataset
from grader.model.evaluation import ArtifactProblem, Evaluation
from grader.model.task import Task
from grader.run.workspace import Workspace
from tests.evaluate.tiny import make_task

NETWORK = """\
from torch import nn

def build_model():
    return nn.Linear(3, 2)
"""


@pytest.fixture(scope="session")
def unscored_task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    folder = tmp_path_factory.mktemp("unscored")
    (folder / "evaluate.py").write_text(NETWORK)
    return replace(make_task(folder), scored=False, targets=())


@pytest.fixture
def found(
    evaluator: Evaluator, unscored_task: Task, workspace: Workspace, noise_data: PreparedDataset
) -> collections.abc.Callable[[], Evaluation]:
    return lambda: evaluator.evaluate(unscored_task, workspace, noise_data)


def test_nothing_has_to_be_left(found: collections.abc.Callable[[], Evaluation]) -> None:
    evaluation = found()
    assert evaluation.problem is None
    assert (evaluation.artifact, evaluation.hidden, evaluation.num_hidden) == ("", {}, 0)


def test_weights_that_fit_are_read_but_not_scored(
    found: collections.abc.Callable[[], Evaluation], workspace: Workspace
) -> None:
    torch.save(
        {"module.weight": torch.ones(2, 3), "module.bias": torch.ones(2)}, workspace.outputs / "model.pt"
    )
    evaluation = found()
    assert (evaluation.problem, evaluation.prefix, evaluation.sums) == (None, "module.", (2.0, 6.0))
    assert evaluation.hidden == {}


def test_weights_of_another_network_and_of_none(
    found: collections.abc.Callable[[], Evaluation], workspace: Workspace
) -> None:
    torch.save({"weight": torch.ones(5, 3), "bias": torch.ones(2)}, workspace.outputs / "model.pt")
    assert found().problem is ArtifactProblem.MISMATCH
    torch.save(
        {"weight": torch.full((2, 3), float("nan")), "bias": torch.ones(2)}, workspace.outputs / "model.pt"
    )
    assert found().problem is ArtifactProblem.NOT_FINITE
