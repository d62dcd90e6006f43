"""Metrics that a task names: all of them are numbers, or somebody is told who has to mend what."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from grader.errors import TaskError
from grader.evaluate.evaluator import Evaluator
from grader.model.dataset import PreparedDataset
from grader.model.evaluation import ArtifactProblem, Evaluation
from grader.model.metric import ACCURACY, Direction, Metric
from grader.model.task import Target
from grader.run.workspace import Workspace
from tests.evaluate.tiny import make_task

ERROR = Metric(
    "error", "mean squared error", "K²", 3, Direction.MIN, 0.005, share=False, reported_as="val_error"
)
EVALUATE = """\
import torch
from torch import nn


def build_model():
    return nn.Linear(1, 1, bias=False)


def evaluate(model, images, labels):
    error = model(torch.ones(1, 1)).square().mean().item()
    return {"error": error, "accuracy": 0.5, "extra": error}
"""
Score = Callable[..., Evaluation]


@pytest.fixture
def score(evaluator: Evaluator, workspace: Workspace, noise_data: PreparedDataset, tmp_path: Path) -> Score:
    """Scores a weight by a task with two metrics; the script has reported these epochs."""

    def measure(weight: float, *epochs: dict[str, float], source: str = EVALUATE) -> Evaluation:
        folder = tmp_path / "task"
        folder.mkdir(exist_ok=True)
        (folder / "evaluate.py").write_text(source)
        torch.save({"weight": torch.full((1, 1), weight)}, workspace.outputs / "model.pt")
        if epochs:
            (workspace.outputs / "metrics.json").write_text(json.dumps({"schema": 1, "epochs": epochs}))
        task = replace(
            make_task(folder), metrics=(ERROR, ACCURACY), targets=(Target("error", levels={"noise": 0.3}),)
        )
        return evaluator.evaluate(task, workspace, noise_data)

    return measure


def test_every_metric_is_measured_on_both_parts_and_what_else_is_said_is_kept(score: Score) -> None:
    found = score(0.5)
    assert found.hidden == found.validation == {"error": 0.25, "accuracy": 0.5, "extra": 0.25}
    assert found.others == (), "less is better here, and it is less than was asked for"


def test_a_report_is_read_by_the_keys_of_the_task(score: Score) -> None:
    found = score(0.5, {"val_error": 0.26, "train_error": 0.2, "patience": 3, "lr\n": 0.1})
    assert found.reported is not None
    assert found.reported.claims(ERROR) == (0.26,)
    assert found.reported.epochs[0]["train_error"] == 0.2
    assert found.reported.unknown == ("lr?", "patience")


def test_another_value_than_was_reported_is_looked_into(score: Score) -> None:
    (own, *_) = score(0.5, {"val_error": 0.1}).others
    assert (own.metric, own.value) == ("error", 0.25)


@pytest.mark.parametrize("name", ["error", "extra"])
def test_what_is_no_number_is_the_learners_where_a_fresh_network_has_one(score: Score, name: str) -> None:
    source = EVALUATE.replace(f'"{name}": error', f'"{name}": error if error < 1e6 else float("inf")')
    found = score(1e6, source=source)
    if name == "extra":
        assert found.problem is None
        assert "extra" not in found.hidden
        return
    assert found.problem is ArtifactProblem.NOT_FINITE
    assert "mean squared error is inf, no number" in found.detail
    assert found.hidden == {}


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('"error": error, ', "", "returns nothing under 'error', which task.toml names"),
        ('"error": error', '"error": float("nan")', "returns nan for 'error' of a fresh network, too"),
        ('"error": error', '"error": "low"', "returns 'low' under 'error', which is no number"),
        ('"extra": error', '"extra": True', "returns True under 'extra', which is no number"),
        ('"accuracy": 0.5', '"accuracy": 50.0', "returns 50 for 'accuracy', a share from 0 to 1"),
        ('return {"error"', 'return 0.5, {"error"', "did not return a dictionary of metrics"),
    ],
)
def test_what_the_author_has_to_mend_is_said_with_the_name(
    score: Score, old: str, new: str, complaint: str
) -> None:
    assert old in EVALUATE
    with pytest.raises(TaskError) as refused:
        score(0.5, source=EVALUATE.replace(old, new))
    assert complaint in str(refused.value)
