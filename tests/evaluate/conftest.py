"""The tiny task, its data, and one real scorer for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.evaluate.evaluator import Evaluator
from grader.model.dataset import PreparedDataset
from grader.model.task import Task
from grader.run.workspace import Workspace
from tests.evaluate.tiny import EVALUATE, NUM_HIDDEN, NUM_VALIDATION, make_task, write_split


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
