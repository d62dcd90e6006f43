"""A score that nobody expected is explained by other scores of real weights; where it is good, nothing is tried."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch

from grader.checks.run.metrics.score_reasons import reason_of
from grader.evaluate.evaluator import Evaluator
from grader.json_reader import read_value
from grader.model.dataset import PreparedDataset
from grader.model.evaluation import Change, Evaluation
from grader.model.metric import ACCURACY
from grader.run.workspace import Workspace
from tests.evaluate.tiny import NUM_VALIDATION, make_task

EVALUATE = """\
import torch
from torch import nn

from grader.evaluate.classifier import accuracy_and_loss


def build_model():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 10), nn.BatchNorm1d(10), nn.ReLU(), nn.Linear(10, 10))


def evaluate(model, images, labels):
    return accuracy_and_loss(model, PREPARED, labels)
"""
ONE_TO_ONE = "(images.unsqueeze(1).float() / 255 - 0.5) / 0.5"


def reading(low: float, high: float, *, turned: bool = False) -> dict[str, torch.Tensor]:
    """Weights that find the one bright pixel of the first row in images from `low` to `high`, and in no others."""
    weight, bright = torch.zeros(10, 784), torch.arange(10)
    weight[bright, bright * 28 if turned else bright] = 1.0
    # What lies below the middle of the range is cut off by the ReLU: of another range all or nothing is.
    return {
        "1.weight": weight / (high - low),
        "1.bias": torch.full((10,), -(0.5 * high + 0.5 * low) / (high - low)),
        "2.weight": torch.ones(10),
        "2.bias": torch.zeros(10),
        "2.running_mean": torch.zeros(10),
        "2.running_var": torch.ones(10),
        "2.num_batches_tracked": torch.tensor(7),
        "4.weight": torch.eye(10),
        "4.bias": torch.zeros(10),
    }


def noise() -> dict[str, torch.Tensor]:
    """Weights that nobody has trained."""
    torch.manual_seed(0)
    drawn = {name: torch.randn_like(value.float()) for name, value in reading(-1, 1).items()}
    return drawn | {"2.running_var": torch.ones(10), "2.num_batches_tracked": torch.tensor(1)}


@pytest.fixture
def score(evaluator: Evaluator, workspace: Workspace, noise_data: PreparedDataset, tmp_path: Path) -> Any:
    """Scores weights, with what else lies in the output folder and what was reported."""

    def measure(weights: dict[str, torch.Tensor], *reported: float, prepared: str = ONE_TO_ONE) -> Evaluation:
        folder = tmp_path / "task"
        folder.mkdir(exist_ok=True)
        (folder / "evaluate.py").write_text(EVALUATE.replace("PREPARED", prepared))
        torch.save(weights, workspace.outputs / "model.pt")
        if reported:
            epochs = [{"val_accuracy": value} for value in reported]
            text = json.dumps({"schema": 1, "epochs": epochs})
            (workspace.outputs / "metrics.json").write_text(text)
        return evaluator.evaluate(make_task(folder), workspace, noise_data)

    return measure


def test_a_score_that_is_as_reported_or_good_enough_costs_nothing_more(score: Any) -> None:
    assert score(reading(-1, 1)).others == ()
    assert score(reading(-1, 1), 0.3, 1.0).others == ()
    # It was told that it is bad.
    assert score(reading(0, 255), score(reading(0, 255)).validation["accuracy"]).others == ()


@pytest.mark.parametrize("reported", [(), (0.2, 1.0), (99.5,)])
def test_images_from_0_to_255(score: Any, reported: tuple[float, ...]) -> None:
    found = score(reading(0, 255), *reported)
    reason = reason_of(found, (ACCURACY,))
    assert reason is not None
    assert found.others[0].change is Change.NOTHING
    assert found.others[0].value == found.validation["accuracy"]
    assert (found.others[0].black, found.others[0].white) == (-1.0, 1.0)
    assert reason.about_images
    assert (reason.other.way, reason.other.black, reason.other.white) == ("bytes as they are", 0.0, 255.0)
    assert reason.other.value == 1.0
    assert reason.other.num_samples == NUM_VALIDATION
    assert (
        "On images from 0 to 255 (bytes as they are) the accuracy of the same weights is 1.000 on 33"
        in reason.sentence
    )
    assert "on images from -1 to 1, which is how the task prepares them" in reason.sentence


def test_weights_that_were_trained_without_normalisation(score: Any) -> None:
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(3)
    labels = torch.randint(0, 10, (600,), generator=generator)
    images = torch.randint(0, 50, (600, 1, 28, 28), generator=generator) / 255
    images[torch.arange(600), 0, 0, labels] = 1.0
    network = torch.nn.Sequential(
        torch.nn.Flatten(),
        torch.nn.Linear(784, 10),
        torch.nn.BatchNorm1d(10),
        torch.nn.ReLU(),
        torch.nn.Linear(10, 10),
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(150):
        loss = torch.nn.functional.cross_entropy(network(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    found = score(network.state_dict())
    reason = reason_of(found, (ACCURACY,))
    assert found.validation["accuracy"] < 0.6
    assert reason is not None
    assert (reason.other.change, reason.other.way) == (Change.RANGE, "no normalisation")
    assert reason.other.value > 0.8


def test_running_statistics_that_lag_behind(score: Any) -> None:
    weights = reading(-1, 1)
    weights["2.running_mean"] = torch.linspace(-1e6, 1e6, 10)
    found = score(weights, 1.0)
    reason = reason_of(found, (ACCURACY,))
    assert reason is not None
    assert reason.other.change is Change.MODE
    assert "In training mode, where BatchNorm takes each batch's own statistics" in reason.sentence


def test_images_that_are_turned_over(score: Any) -> None:
    reason = reason_of(score(reading(-1, 1, turned=True), 1.0), (ACCURACY,))
    assert reason is not None
    assert (reason.other.change, reason.other.way) == (Change.LAYOUT, "rows for columns")


def test_the_weights_of_another_epoch(score: Any, workspace: Workspace) -> None:
    (workspace.outputs / "checkpoints").mkdir()
    wrapped = {f"module.{name}": value for name, value in reading(-1, 1).items()}
    whole = {"epoch": 10, "optimizer": {"state": {}}, "model": wrapped}
    torch.save(whole, workspace.outputs / "checkpoints" / "epoch10.pth")
    torch.save(noise(), workspace.outputs / "checkpoints" / "epoch9.pth")
    torch.save({"w": torch.ones(3)}, workspace.outputs / "other.pt")
    (workspace.outputs / "broken.pt").write_bytes(b"nothing of the kind")
    (workspace.outputs / "link.pt").symlink_to(workspace.outputs / "checkpoints" / "epoch10.pth")
    found = score(noise(), 0.1, 1.0)
    assert [one.way for one in found.others if one.change is Change.WEIGHTS] == [
        "checkpoints/epoch10.pth", "checkpoints/epoch9.pth",
    ]  # fmt: skip
    reason = reason_of(found, (ACCURACY,))
    assert reason is not None
    assert (reason.other.way, reason.other.value) == ("checkpoints/epoch10.pth", 1.0)
    assert "With the weights in `checkpoints/epoch10.pth` the accuracy is 1.000 on 33" in reason.sentence


def test_weights_that_are_bad_in_every_way_get_no_reason(score: Any) -> None:
    found = score(noise(), 0.97)
    assert found.others
    assert reason_of(found, (ACCURACY,)) is None


def test_a_preparation_that_is_no_single_factor_is_left_as_it_is(score: Any) -> None:
    own = "(lambda x: (x - x.mean((1, 2), True)) / x.std((1, 2), keepdim=True))(images.float()).unsqueeze(1)"
    found = score(reading(100, 200), 1.0, prepared=own)
    assert {one.change for one in found.others} == {Change.NOTHING, Change.MODE}
    assert {one.black for one in found.others} == {None}


def test_the_same_weights_get_the_same_scores(score: Any) -> None:
    first, again = score(reading(0, 255), 1.0), score(reading(0, 255), 1.0)
    assert first.others == again.others


def test_evaluations_from_before_there_were_other_scores_are_still_read() -> None:
    stored = asdict(Evaluation(None, hidden={"accuracy": 0.1}))
    del stored["others"]
    assert read_value(Evaluation, stored).others == ()
