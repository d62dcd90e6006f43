"""What each sample counted for in a step: the weights of samples' gradients in what was stepped on, by least squares.

A rank's mean points much the same way whichever half of its samples it is made of. Samples' own gradients do not: there
are more elements than samples, so that weights which a loss gives to them can be read off to a few hundredths, if the
network was given these very images. The last layers are enough, and the way back to them is short; through layers that
mix a batch (BatchNorm) it is gone for each sample with all the others beside it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

from grader.model.audited_step import FEW, CountedSample

if TYPE_CHECKING:
    from torch import Tensor

_MOST_SAMPLES = 512
"""Of one step, on all ranks: the work grows with the square."""
_ELEMENTS, _PER_SAMPLE = 4000, 8
"""Elements of the gradient that weights are read off from, at least; and of these for each sample."""
_CHUNK = 16
_CLEAR = 0.1
"""What may come of no sample, as a share of what was stepped on."""
_SURE = 0.02
"""How far the weight of a sample may be off, as a share of the mean one."""


class OutOfTimeError(Exception):
    """There is no time left."""


@dataclass(frozen=True, slots=True)
class Trainer:
    """The task's network and training images.

    Attributes:
        images, labels: uint8 (N, H, W) and int64 (N,).
    """

    module: ModuleType
    network: Any
    images: Tensor
    labels: Tensor

    def gradient(self, batches: Sequence[Sequence[int]], names: Sequence[str], stride: int) -> Tensor:
        """The mean gradient of some batches as the network is, flat, one element in so many of each parameter."""
        import torch

        self.network.zero_grad()
        for batch in batches:
            (self.losses(batch).mean() / len(batches)).backward()
        held = dict(self.network.named_parameters())
        grads = [p.grad if p.grad is not None else torch.zeros_like(p) for p in map(held.__getitem__, names)]
        return torch.cat([grad.reshape(-1)[::stride] for grad in grads]).double()

    def losses(self, batch: Sequence[int]) -> Tensor:
        """Cross-entropy of each sample of a batch, in training mode."""
        from torch.nn import functional as F

        prepared = self._prepared(self.images[batch])
        self.network.train()
        return F.cross_entropy(self.network(prepared), self.labels[batch], reduction="none")

    def _prepared(self, images: Tensor) -> Tensor:
        """What the task's `evaluate()` gives the network for these images."""
        import torch

        given: list[Tensor] = []

        def keep(_network: Any, inputs: tuple[Tensor, ...]) -> None:
            given.append(inputs[0].clone())

        hook = self.network.register_forward_pre_hook(keep)
        try:
            self.network.eval()
            with torch.no_grad():
                self.module.evaluate(self.network, images, torch.zeros(len(images), dtype=torch.int64))
        finally:
            hook.remove()
        return torch.cat(given)


def counted_samples(
    trainer: Trainer,
    gradients: Mapping[str, Tensor],
    drawn: Sequence[Sequence[Sequence[int]]],
    stride: int,
    ends: tuple[float, float],
) -> tuple[CountedSample, ...]:
    """What samples of a step counted for, those of which it can be told; none where they do not explain it.

    Args:
        trainer: with the weights before the step.
        gradients: what was stepped on, by parameter in order, flat, one element in `stride`.
        drawn: for each rank, its batches.
        ends: of the time, by `time.monotonic`, and of the processor time that this may take.

    Raises:
        OutOfTimeError: it ran out.
    """
    import torch

    places = [
        (rank, n, i) for rank, of in enumerate(drawn) for n, i in enumerate(i for one in of for i in one)
    ]
    if len(places) > _MOST_SAMPLES:
        return ()
    names = _last(gradients, max(_ELEMENTS, _PER_SAMPLE * len(places)))
    stepped = torch.cat([gradients[name] for name in names]).double()
    for name, param in trainer.network.named_parameters():
        param.requires_grad_(name in names)
    rows, losses = [], list[float]()
    for batches in drawn:
        for batch in batches:
            loss = trainer.losses(batch)
            losses += loss.tolist()
            parts = len(batch) * len(batches) * len(drawn)
            rows.append(_rows(trainer, loss, names, stride, ends) / parts)
    solved = _solved(torch.cat(rows), stepped)
    if solved is None:
        return ()
    weights, errors = solved
    # What hardly has a gradient has any weight: each counts by how well its own is known.
    sure = 1 / errors.clamp(min=1e-12 * float(weights.abs().max())) ** 2
    mean_of_all = float((sure * weights).sum() / sure.sum())
    found = []
    for rank in range(len(drawn)):
        own = [n for n, place in enumerate(places) if place[0] == rank]
        mean = float((sure * weights)[own].sum() / sure[own].sum())
        # A rank without a part in the step says nothing of its samples.
        if mean <= 0 or mean < FEW * mean_of_all:
            continue
        for n in own:
            if float(errors[n]) <= _SURE * mean:
                _, place, index = places[n]
                label, weight = int(trainer.labels[index]), float(weights[n]) / mean
                found.append(CountedSample(rank, index, place, label, round(weight, 4), round(losses[n], 4)))
    return tuple(found)


def _last(gradients: Mapping[str, Tensor], num: int) -> list[str]:
    """Names of the last parameters that have together as many elements, in order; all where there are fewer."""
    names: list[str] = []
    for name in reversed(list(gradients)):
        if sum(len(gradients[one]) for one in names) >= num:
            break
        names.insert(0, name)
    return names


def _rows(trainer: Trainer, loss: Tensor, names: list[str], stride: int, ends: tuple[float, float]) -> Tensor:
    """The gradient of each sample's loss, (samples, elements)."""
    import torch

    held = dict(trainer.network.named_parameters())
    params = [held[name] for name in names]
    rows = []
    for chunk in torch.eye(len(loss)).split(_CHUNK):
        if time.monotonic() > ends[0] or time.process_time() > ends[1]:
            raise OutOfTimeError
        grads = torch.autograd.grad(loss, params, chunk, retain_graph=True, is_grads_batched=True)
        rows.append(torch.cat([grad.reshape(len(chunk), -1)[:, ::stride] for grad in grads], 1))
    return torch.cat(rows).double()


def _solved(rows: Tensor, stepped: Tensor) -> tuple[Tensor, Tensor] | None:
    """Weights of the rows in what was stepped on, and their standard errors; None where they leave too much of it."""
    import torch

    freedom = len(stepped) - len(rows)
    if freedom < len(rows) or not bool(torch.isfinite(rows).all()) or not float(stepped.norm()) > 0:
        return None
    gram = rows @ rows.T
    gram += 1e-9 * gram.diagonal().mean() * torch.eye(len(gram), dtype=gram.dtype)
    inverse = torch.linalg.inv(gram)
    weights = inverse @ (rows @ stepped)
    left = float((stepped - weights @ rows).norm())
    if not left <= _CLEAR * float(stepped.norm()):
        return None
    return weights, inverse.diagonal().clamp(min=0).sqrt() * (left / freedom**0.5)
