"""Take steps of a run again: from the weights that were told and the data set's own samples, the gradient of each rank.

What all ranks stepped on is a weighted sum of those; the weights say whose samples it came of. Augmentation, dropout,
smoothed labels and compression change every rank's part alike, so none of them is left out. Runs in the scorer's child:
what it reads was told by the learner's own processes.
"""

from __future__ import annotations

import math
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

from grader.evaluate.scorer.run_scoring import ScoringCache, ScoringRequest, fresh_network
from grader.model.audited_step import FEW, AuditedStep

if TYPE_CHECKING:
    from torch import Tensor

WALL_S = 8.0
"""Time after which taking steps again is given up."""
_ALIKE = 0.05
"""Size of what is a rank's own in its gradient, as a share of it: with less, its part can't be told from others'."""


@dataclass(frozen=True, slots=True)
class _Trainer:
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
        from torch.nn import functional as F

        self.network.zero_grad()
        for batch in batches:
            prepared, labels = self._prepared(self.images[batch]), self.labels[batch]
            self.network.train()
            (F.cross_entropy(self.network(prepared), labels) / len(batches)).backward()
        held = dict(self.network.named_parameters())
        grads = [p.grad if p.grad is not None else torch.zeros_like(p) for p in map(held.__getitem__, names)]
        return torch.cat([grad.reshape(-1)[::stride] for grad in grads]).double()

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


def audited(request: ScoringRequest, cache: ScoringCache, _mark: Callable[[bytes], object]) -> dict[str, Any]:
    """The answer to a request for a run of which steps were told: `{"audited": […]}`, see `AuditedStep`.

    Args: as `run_scoring.score_run`. A step that can't be taken again is left out: its loss may be another one.
    """
    import torch

    module = cache.module(request)
    images, labels = cache.split(request.visible, request, "train")
    network = fresh_network(module, request.model_size)
    trainer = _Trainer(module, network, torch.from_numpy(images.copy()), torch.from_numpy(labels.copy()))
    found = []
    for step in request.told_steps:
        torch.manual_seed(0)
        try:
            one = _audited(step, trainer)
        except (ValueError, IndexError, RuntimeError):
            continue
        if one is not None:
            found.append(asdict(one))
    return {"audited": found}


def _audited(step: dict[str, Any], trainer: _Trainer) -> AuditedStep | None:
    import torch

    stride, samples = step["stride"], step["samples"]
    if not _load(trainer.network, dict(zip(map(_plain, step["names"]), step["weights"], strict=True))):
        return None
    told = zip(step["names"], step["gradients"], strict=True)
    gradients = {_plain(name): _decoded(one, torch.bfloat16) for name, one in told if one}
    names, stepped = list(gradients), torch.cat(list(gradients.values())).double()
    own = [trainer.gradient(around[0], names, stride) for around in samples]
    shares = _shares(stepped, own)
    if shares is None:
        return None
    sizes = [sum(map(len, around[0])) for around in samples]
    fair = tuple(size / sum(sizes) for size in sizes)
    for rank, around in enumerate(samples):
        # A batch that was drawn ahead is told of another step than the one that it is trained on in.
        for other in around[1:]:
            if shares[0][rank] < FEW * fair[rank] and other and min(map(min, other)) >= 0:
                tried = list(own)
                tried[rank] = trainer.gradient(other, names, stride)
                again = _shares(stepped, tried)
                if again is not None and again[0][rank] > shares[0][rank]:
                    shares, own = again, tried
    return AuditedStep(step["n"], step["by"], shares[0], fair, shares[1])


def _shares(stepped: Tensor, own: Sequence[Tensor]) -> tuple[tuple[float, ...], float] | None:
    """By rank, the share of its gradient in what was stepped on, and how much comes of none, by least squares.

    None where ranks' gradients are too much alike, or nothing is left of them.
    """
    import torch

    columns = torch.stack(list(own), 1)
    sizes = columns.norm(dim=0)
    if not (stepped.norm() > 0 and bool((sizes > 0).all()) and bool(torch.isfinite(columns).all())):
        return None
    # The smallest singular value of columns of one size says how much the one that is most like the others has its own.
    if torch.linalg.svdvals(columns / sizes)[-1] < _ALIKE:
        return None
    weights = torch.linalg.lstsq(columns / sizes, stepped[:, None]).solution[:, 0] / sizes
    left = float((stepped - columns @ weights).norm() / stepped.norm())
    total = float(weights.sum())
    if not (total > 0 and math.isfinite(left)):
        return None
    return tuple(round(float(one) / total, 6) for one in weights), round(left, 6)


def _plain(name: str) -> str:
    """A parameter's name without what wrappers and compilers put in front of it, or among it."""
    return name.replace("_orig_mod.", "").removeprefix("module.")


def _load(network: Any, weights: Mapping[str, Sequence[str]]) -> bool:
    """Give the network these weights; whether they are all that it has."""
    import torch

    held = dict(network.named_parameters())
    if weights.keys() != held.keys():
        return False
    with torch.no_grad():
        for name, parts in weights.items():
            flat = torch.cat([_decoded(part, torch.float16) for part in parts])
            held[name].copy_(flat.reshape(held[name].shape))
    return True


def _decoded(text: str, dtype: Any) -> Tensor:
    import torch

    return torch.frombuffer(bytearray(b64decode(text, validate=True)), dtype=dtype).float()
