"""Take steps of a run again: from the weights that were told and the data set's own samples, the gradient of each rank.

What all ranks stepped on is a weighted sum of those; the weights say whose samples it came of. Augmentation, dropout,
smoothed labels and compression change every rank's part alike, so none of them is left out. Runs in the scorer's child:
what it reads was told by the learner's own processes.
"""

from __future__ import annotations

import math
import time
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from grader.evaluate.audit.sample_weights import OutOfTimeError, Trainer, counted_samples
from grader.evaluate.scorer.run_scoring import ScoringCache, ScoringRequest, fresh_network
from grader.model.audited_step import FEW, AuditedStep

if TYPE_CHECKING:
    from torch import Tensor

WALL_S = 8.0
"""Time after which taking steps again is given up."""
_SAMPLES_S = 5.0
"""Time, and processor time, for what single samples counted for."""
_EVEN = 0.1
"""What ranks' means may leave where all samples of a rank count alike."""
_ALIKE = 0.05
"""Size of what is a rank's own in its gradient, as a share of it: with less, its part can't be told from others'."""


def audited(request: ScoringRequest, cache: ScoringCache, _mark: Callable[[bytes], object]) -> dict[str, Any]:
    """The answer to a request for a run of which steps were told: `{"audited": […]}`, see `AuditedStep`.

    Args: as `run_scoring.score_run`. A step that can't be taken again is left out: its loss may be another one.
    """
    import torch

    module = cache.module(request)
    images, labels = cache.split(request.visible, request, "train")
    network = fresh_network(module, request.model_size)
    trainer = Trainer(module, network, torch.from_numpy(images.copy()), torch.from_numpy(labels.copy()))
    found = []
    for step in request.told_steps:
        torch.manual_seed(0)
        try:
            one = _audited(step, trainer)
        except (ValueError, IndexError, RuntimeError):
            continue
        if one is not None:
            found.append(one)
    return {"audited": [asdict(one.step) for one in _with_samples(found, trainer)]}


class _Taken(NamedTuple):
    """A step that was taken again.

    Attributes:
        step: what is known of it so far. told: as the run told it.
        gradients: that were stepped on, flat, by parameter.
        drawn: for each rank, the batches that it was taken again with.
    """

    step: AuditedStep
    told: dict[str, Any]
    gradients: dict[str, Tensor]
    drawn: list[list[list[int]]]


def _with_samples(found: list[_Taken], trainer: Trainer) -> list[_Taken]:
    """The same, with what samples counted for where ranks' means do not explain a step, while there is time."""
    ends = (time.monotonic() + _SAMPLES_S, time.process_time() + _SAMPLES_S)
    taken = list(found)
    for n, one in enumerate(found):
        if one.step.unexplained < _EVEN:
            continue
        try:
            _load(trainer.network, _weights(one.told))
            samples = counted_samples(trainer, one.gradients, one.drawn, one.told["stride"], ends)
        except OutOfTimeError:
            break
        except (ValueError, IndexError, RuntimeError):
            continue
        if not samples:
            break  # images are changed at random, and what is said of one step can't be said of others
        taken[n] = one._replace(step=replace(one.step, samples=samples))
    return taken


def _audited(step: dict[str, Any], trainer: Trainer) -> _Taken | None:
    import torch

    stride, samples = step["stride"], step["samples"]
    if not _load(trainer.network, _weights(step)):
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
    drawn = [around[0] for around in samples]
    for rank, around in enumerate(samples):
        # A batch that was drawn ahead is told of another step than the one that it is trained on in.
        for other in around[1:]:
            if shares[0][rank] < FEW * fair[rank] and other and min(map(min, other)) >= 0:
                tried = list(own)
                tried[rank] = trainer.gradient(other, names, stride)
                again = _shares(stepped, tried)
                if again is not None and again[0][rank] > shares[0][rank]:
                    shares, own, drawn[rank] = again, tried, other
    return _Taken(AuditedStep(step["n"], step["by"], shares[0], fair, shares[1]), step, gradients, drawn)


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


def _weights(step: dict[str, Any]) -> dict[str, Sequence[str]]:
    """By parameter, the parts that its weights were told in."""
    return dict(zip(map(_plain, step["names"]), step["weights"], strict=True))


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
