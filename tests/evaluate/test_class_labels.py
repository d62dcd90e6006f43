"""Weights count for the labels of their own attempt, on both splits and in other ways of scoring, too."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from grader.evaluate.evaluator import Evaluator
from grader.evaluate.files.measurement_files import read_stored
from grader.model.dataset import PreparedDataset
from grader.model.evaluation import Change, Evaluation
from grader.model.task import Task
from grader.run.workspace import Workspace
from tests.evaluate.test_evaluator import perfect_state

ROTATED = (*range(1, 10), 0)


def renumbered(class_labels: tuple[int, ...]) -> dict[str, torch.Tensor]:
    """Weights that know the classes by the numbers of one attempt."""
    state = perfect_state()
    weight = torch.zeros(10, 784)
    for prepared, label in enumerate(class_labels):
        weight[label, prepared] = 1.0
    return {**state, "1.weight": weight}


@pytest.fixture
def judged(
    evaluator: Evaluator, tiny_task: Task, workspace: Workspace, noise_data: PreparedDataset
) -> Evaluation:
    """Weights that were trained on the labels of an attempt, scored there."""
    torch.save(renumbered(ROTATED), workspace.outputs / "model.pt")
    return evaluator.evaluate(tiny_task, workspace, replace(noise_data, class_labels=ROTATED))


def test_weights_of_the_attempt_are_right_on_both_splits(judged: Evaluation, workspace: Workspace) -> None:
    assert (judged.hidden["accuracy"], judged.validation["accuracy"]) == (1.0, 1.0)
    assert judged.class_labels == ROTATED
    assert read_stored(workspace.evaluation, Evaluation) == judged


def test_perfect_weights_from_elsewhere_are_worth_nothing(
    evaluator: Evaluator, tiny_task: Task, workspace: Workspace, noise_data: PreparedDataset
) -> None:
    torch.save(perfect_state(), workspace.outputs / "model.pt")
    found = evaluator.evaluate(tiny_task, workspace, replace(noise_data, class_labels=ROTATED))
    assert (found.hidden["accuracy"], found.validation["accuracy"]) == (0.0, 0.0)
    assert evaluator.evaluate(tiny_task, workspace, noise_data).hidden["accuracy"] == 1.0


def test_scores_in_other_ways_are_by_the_same_labels(
    evaluator: Evaluator, tiny_task: Task, workspace: Workspace, noise_data: PreparedDataset
) -> None:
    torch.save(renumbered(ROTATED), workspace.outputs / "model.pt")
    (workspace.outputs / "metrics.json").write_text('{"schema": 1, "epochs": [{"val_accuracy": 0.1}]}')
    found = evaluator.evaluate(tiny_task, workspace, replace(noise_data, class_labels=ROTATED))
    own = next(one for one in found.others if one.change is Change.NOTHING)
    assert own.value == 1.0
