"""Trusted scoring of `large-batch`: the network that the weights must fit, what they are worth, and their valley.

Runs only in the scorer, on a state dict that was loaded as plain tensors. It never imports, executes or looks
at a submission.

The valley is that of the training loss around the weights: its largest curvature, by power iteration on products of the
Hessian with a vector (Pearlmutter 1994; Yao et al., arXiv:1912.07145), and contour lines over a plane of two random
directions that are scaled filter by filter to the weights (Li et al., arXiv:1712.09913). Beside it lies that of a
network which is trained here, on batches of 16 as the script once was.
"""

import copy
import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F

from grader.evaluate.classifier import accuracy_and_loss
from grader.evaluate.small_convnet import SmallConvNet
from grader.model.task_figure import Panel, Surface, TaskFigure

SMALL_BATCH, SMALL_RATE, MOMENTUM, EPOCHS = 16, 0.006, 0.9, 10
"""How the script was trained before its batch grew."""
MOST_UPDATES = 1_000
"""Where ten epochs are more, the judge has no time for them; the large batch takes fewer in any case."""
_SAMPLES, _SIDE, _REACH = 256, 13, 1.0
"""Training images that the loss is taken over, points along a side of the plane, and how far it goes from the middle:
at 1 a filter has moved by as much as it is long."""
_PRODUCTS = 12
_LEVELS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


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
    inputs, labels = _prepared(seen.images), seen.labels
    small = _trained_on_small_batches(inputs, labels)
    every = max(1, len(labels) // _SAMPLES)
    inputs, labels = inputs[::every], labels[::every]
    panels, curvatures, rims = [], [], []
    for title, model in (
        (f"Trained on batches of {SMALL_BATCH}, by the judge", small),
        ("Your weights", seen.model),
    ):
        surface = _surface(model, inputs, labels)
        panels.append(Panel(title, "first direction", "second direction", surface=surface))
        curvatures.append(_largest_curvature(model, inputs, labels))
        rims.append(_rise(surface))
    return [
        TaskFigure("valley", "The valley that the weights lie in", _told(curvatures, rims), tuple(panels))
    ]


def _told(curvatures: list[float], rims: list[float]) -> str:
    small, own = (f"{value:.2g}" for value in curvatures)
    low, high = (f"{value:.2g}" for value in rims)
    return (
        f"The largest curvature of the training loss (the Hessian's largest eigenvalue) is {own} at your weights and "
        f"{small} at those of a small batch. Half a filter's length away in random directions the loss has risen by "
        f"{high} around yours and by {low} around the others. Equal heights have equal lines; the closer they lie, the "
        "steeper the valley. A wide valley is no target: nothing here counts for points."
    )


def _trained_on_small_batches(inputs: torch.Tensor, labels: torch.Tensor) -> nn.Module:
    """The network after the old script's epochs, with a seed of its own."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = build_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=SMALL_RATE, momentum=MOMENTUM)
        order = torch.cat([torch.randperm(len(labels)) for _ in range(EPOCHS)])
        for batch in order.split(SMALL_BATCH)[:MOST_UPDATES]:
            optimizer.zero_grad()
            F.cross_entropy(model(inputs[batch]), labels[batch]).backward()
            optimizer.step()
    return model


def _largest_curvature(model: nn.Module, inputs: torch.Tensor, labels: torch.Tensor) -> float:
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
def _surface(model: nn.Module, inputs: torch.Tensor, labels: torch.Tensor) -> Surface:
    """Training loss over the plane; a direction's filters are as long as the weights', biases stay as they are."""
    middle = {name: p.detach() for name, p in model.named_parameters()}
    directions = [_scaled(made, middle.values()) for made in _planes(middle)]
    steps = [_REACH * (2 * i / (_SIDE - 1) - 1) for i in range(_SIDE)]
    rows = []
    for y in steps:
        row = []
        for x in steps:
            moved = {
                name: w + x * a + y * b for (name, w), a, b in zip(middle.items(), *directions, strict=True)
            }
            row.append(float(F.cross_entropy(functional_call(model, moved, (inputs,)), labels)))
        rows.append(tuple(row))
    return Surface(tuple(steps), tuple(steps), tuple(rows), _LEVELS)


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


def _rise(surface: Surface) -> float:
    """Mean rise of the loss half way from the middle to the plane's edges, in both directions and back."""
    middle, half = _SIDE // 2, _SIDE // 4
    around = [
        (middle - half, middle),
        (middle + half, middle),
        (middle, middle - half),
        (middle, middle + half),
    ]
    heights = [surface.heights[row][column] or 0.0 for row, column in around]
    return sum(heights) / len(heights) - (surface.heights[middle][middle] or 0.0)
