"""What the report of large-batch says of the valley: the right curvature, and steps as long as filters."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from grader.catalog.tasks.task_folders import load_task
from grader.evaluate.scorer.task_figures import Drawable, checked
from grader.model.run_account import RunAccount
from tests.evaluate.test_examinations import module_of

TASK = module_of(load_task("large-batch"))


def test_the_largest_curvature_is_the_hessians_largest_eigenvalue(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    inputs, labels = torch.randn(64, 4), torch.randint(0, 3, (64,))

    def loss(flat: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(inputs @ flat[:12].view(3, 4).T + flat[12:], labels)

    flat = torch.cat([model.weight.flatten(), model.bias]).detach()
    largest = float(torch.linalg.eigvalsh(torch.autograd.functional.hessian(loss, flat))[-1])
    monkeypatch.setattr(TASK, "_PRODUCTS", 60)
    assert TASK._curvature(model, inputs, labels) == pytest.approx(largest, rel=0.02)


def test_a_step_to_the_side_moves_each_filter_by_its_own_length_and_no_bias() -> None:
    model = TASK.build_model()
    weights = list(model.parameters())
    for weight, step in zip(weights, TASK._scaled(TASK._random_like(weights, 1), weights), strict=True):
        if weight.dim() == 1:
            assert not step.any()
            continue
        assert torch.allclose(step.flatten(1).norm(dim=1), weight.flatten(1).norm(dim=1), rtol=1e-4)


@pytest.mark.parametrize("version", [*json.loads(TASK.SMALL_BATCH.read_text()), "data of another site"])
def test_a_valley_is_drawn_beside_that_of_a_small_batch_where_one_is_known(version: str) -> None:
    model = TASK.build_model()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    images, labels = torch.randint(0, 256, (300, 28, 28), dtype=torch.uint8), torch.randint(0, 10, (300,))
    seen = Drawable(model, images, labels, None, version, {}, RunAccount.silent())
    (figure,) = checked(TASK.figures(seen))
    known = version != "data of another site"
    assert [panel.title for panel in figure.panels] == ["Trained on batches of 16"] * known + ["Your weights"]
    assert figure.summary.count("(") == 2 * known
    assert all(torch.equal(before[name], weight) for name, weight in model.state_dict().items())
    assert checked(TASK.figures(seen)) == (figure,), "the same weights give the same picture"
