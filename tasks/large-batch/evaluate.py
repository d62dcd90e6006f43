"""Trusted scoring of `large-batch`: the network that the weights must fit, what they are worth, and their valley.

Runs only in the scorer, on a state dict that was loaded as plain tensors. It never imports, executes or looks
at a submission.

The valley is that of the training loss around the weights: its largest curvature, by power iteration on products of the
Hessian with a vector (Pearlmutter 1994; Yao et al., arXiv:1912.07145), and contour lines over a plane of two random
directions that are scaled filter by filter to the weights (Li et al., arXiv:1712.09913). Beside it lies that of a
network that was trained on batches of 16, as the script once did.
"""

import copy
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F

from grader.evaluate.classifier import accuracy_and_loss
from grader.evaluate.small_convnet import SmallConvNet
from grader.model.task_figure import Panel, Series, Surface, TaskFigure

SMALL_BATCH = Path(__file__).parent / "small_batch.json"
"""Valleys that training as it once was ends in, by version of the data; `figures/small_batch.py` makes it."""
_SAMPLES, _SIDE = 256, 13
"""Training images that the loss is taken over, points along a side of the plane."""
_STEPS = tuple(2 * i / (_SIDE - 1) - 1 for i in range(_SIDE))
"""At 1 a filter has moved by as much as it is long."""
_PRODUCTS = 10
_AXES = "one direction, in lengths of filters", "another one"
_LEVELS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


def build_model() -> nn.Module:
    """The skeleton's network with fresh weights, on the CPU."""
    return SmallConvNet()


def evaluate(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> dict[str, float]:
    """Accuracy and mean loss over uint8 images (N, 28, 28) with int64 labels (N,), each scored once."""
    return accuracy_and_loss(model, _prepared(images), labels)


def _prepared(images: torch.Tensor) -> torch.Tensor:
    # the skeleton's ToTensor and Normalize((0.5,), (0.5,))
    return (images.unsqueeze(1).float() / 255 - 0.5) / 0.5


def figures(seen: Any) -> list[TaskFigure]:
    """The valley around the run's weights beside that of a small batch; nothing where there are no weights."""
    if seen.model is None:
        return []
    # So little at a time is quickest on one core, beside whatever else the machine does.
    torch.set_num_threads(1)
    valleys = {"Your weights": valley(seen.model, seen.images, seen.labels)}
    known = json.loads(SMALL_BATCH.read_text(encoding="utf-8"))
    if seen.data_version in known:
        valleys = {"Trained on batches of 16": known[seen.data_version]} | valleys
    middle = Series("the weights", (0.0,), (0.0,), dots=True, colour=1)
    panels = (Panel(title, *_AXES, (middle,), _surface(one)) for title, one in valleys.items())
    return [
        TaskFigure("valley", "The valley that the weights lie in", _told(*valleys.values()), tuple(panels))
    ]


def valley(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> dict[str, Any]:
    """What is drawn of the training loss around a network's weights, as data for JSON.

    Returns:
        `curvature`, the Hessian's eigenvalue of largest magnitude; `heights`, the loss in rows over the plane.
    """
    every = max(1, len(labels) // _SAMPLES)
    inputs, labels = _prepared(images[::every]), labels[::every]
    return {"curvature": _curvature(model, inputs, labels), "heights": _heights(model, inputs, labels)}


def _told(*valleys: dict[str, Any]) -> str:
    others = ("", "") if len(valleys) < 2 else _numbers(valleys[0])
    beside = [f" ({number} at those of a small batch)" if number else "" for number in others]
    curvature, rise = _numbers(valleys[-1])
    return (
        f"The largest curvature of the training loss, its Hessian's largest eigenvalue, is {curvature} at your weights"
        f"{beside[0]}. Half a filter's length away in random directions the loss has risen by {rise}{beside[1]}. Lines "
        "join equal losses; the closer they lie, the steeper the valley. A wide one is no target: nothing here counts "
        "for points."
    )


def _numbers(one: dict[str, Any]) -> tuple[str, str]:
    """Curvature, and mean rise of the loss half way from the middle to the edges, in both directions and back."""
    heights, middle, half = one["heights"], _SIDE // 2, (_SIDE - 1) // 4
    around = [
        (middle - half, middle),
        (middle + half, middle),
        (middle, middle - half),
        (middle, middle + half),
    ]
    rise = sum(heights[row][column] for row, column in around) / len(around) - heights[middle][middle]
    curvature, rise_told = (f"{float(f'{value:.2g}'):g}" for value in (one["curvature"], rise))
    return curvature, rise_told


def _curvature(model: nn.Module, inputs: torch.Tensor, labels: torch.Tensor) -> float:
    """The Hessian's eigenvalue of largest magnitude, to some percent."""
    weights = list(copy.deepcopy(model).requires_grad_().parameters())
    named = dict(zip((name for name, _ in model.named_parameters()), weights, strict=True))
    loss = F.cross_entropy(functional_call(model, named, (inputs,)), labels)
    slopes = torch.autograd.grad(loss, weights, create_graph=True)
    vector = _random_like(weights)
    value = 0.0
    for _ in range(_PRODUCTS):
        length = math.sqrt(sum(float((v * v).sum()) for v in vector)) or 1.0
        vector = [v / length for v in vector]
        product = torch.autograd.grad(slopes, weights, vector, retain_graph=True)
        value = sum(float((v * p).sum()) for v, p in zip(vector, product, strict=True))
        vector = list(product)
    return value


@torch.no_grad()
def _heights(model: nn.Module, inputs: torch.Tensor, labels: torch.Tensor) -> list[list[float]]:
    """Training loss over the plane; a direction's filters are as long as the weights', biases stay as they are."""
    middle = {name: p.detach() for name, p in model.named_parameters()}
    directions = [_scaled(made, middle.values()) for made in _planes(middle)]
    rows = []
    for y in _STEPS:
        row = []
        for x in _STEPS:
            moved = {
                name: w + x * a + y * b for (name, w), a, b in zip(middle.items(), *directions, strict=True)
            }
            row.append(float(F.cross_entropy(functional_call(model, moved, (inputs,)), labels)))
        rows.append(row)
    return rows


def _surface(one: dict[str, Any]) -> Surface:
    return Surface(_STEPS, _STEPS, tuple(map(tuple, one["heights"])), _LEVELS)


def _planes(middle: dict[str, torch.Tensor]) -> list[list[torch.Tensor]]:
    return [_random_like(middle.values(), seed) for seed in (1, 2)]


def _random_like(tensors: Iterable[torch.Tensor], seed: int = 0) -> list[torch.Tensor]:
    dice = torch.Generator().manual_seed(seed)
    return [torch.randn(t.shape, generator=dice) for t in tensors]


def _scaled(direction: list[torch.Tensor], weights: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    """Each filter (a row of a linear layer) as long as the one of the weights; nothing for biases."""
    scaled = []
    for d, w in zip(direction, weights, strict=True):
        lengths = (
            (w.flatten(1).norm(dim=1) / d.flatten(1).norm(dim=1)) if w.dim() > 1 else torch.zeros(len(w))
        )
        scaled.append(d * lengths.view(-1, *[1] * (w.dim() - 1)))
    return scaled
