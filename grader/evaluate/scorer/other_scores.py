"""Scores of the same run in other ways, where nobody expected the one it got: one thing is changed at a time.

Tries what goes wrong most often between a script and its scorer: how images are prepared, in which mode the network is,
which of the saved weights are meant. Nothing of it counts for points; what it means is for who judges to say. A task's
`evaluate()` needs to know nothing of it: what its network is given is watched, and changed on the way.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from grader.evaluate.files.plain_files import RefusedError, read_plain_file
from grader.evaluate.files.weight_files import ARTIFACTS, load_checkpoint, load_weights
from grader.evaluate.scorer.run_scoring import Part, ScoringCache, ScoringRequest, fresh_network, metrics_of
from grader.model.evaluation import Change, OtherScore
from grader.model.metric import Metric

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

WALL_S = 9.0
"""Time after which looking for other scores is given up."""
_LAST_START_S = 5.0
NUM_SAMPLES = 500
"""Validation samples at most, spread evenly over the split."""
MAX_FILES, MAX_FILE_BYTES = 6, 64 << 20
_SAVED = (".bin", ".ckpt", ".pt", ".pth", ".safetensors")
_PROBED = 16
_KNOWN = (
    ("no normalisation", 0.0, 1.0),
    ("a mean and a standard deviation of 0.5", 0.5, 0.5),
    ("bytes as they are", 0.0, 1 / 255),
    ("the mean and standard deviation of MNIST", 0.1307, 0.3081),
    ("the mean and standard deviation of ImageNet's grey values", 0.449, 0.226),
)
"""Preparations by name, with mean and standard deviation for pixels from 0 to 1."""

Prepared: TypeAlias = "Callable[[Tensor], Tensor]"


@dataclass(frozen=True, slots=True)
class _Range:
    """What the darkest and the brightest pixel become."""

    black: float
    white: float

    def into(self, other: _Range) -> Prepared:
        """From images in this range to the same ones in another."""
        factor = (other.white - other.black) / (self.white - self.black)
        return lambda images: (images - self.black) * factor + other.black


@dataclass(frozen=True, slots=True)
class _Trial:
    """The task's network on one sample, of a task's own data on all; weights are loaded anew for each score."""

    module: ModuleType
    network: Any
    part: Part
    metric: Metric

    def score(
        self, weights: dict[str, Tensor], way: Prepared | None = None, *, trains: bool = False
    ) -> float:
        """The metric of these weights with what the network is given changed on the way, or in training mode."""
        import torch

        def changed(network: Any, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            if trains:
                # `evaluate()` has asked for evaluation mode by now.
                network.train()
            return (way(given[0]), *given[1:]) if way is not None else given

        torch.manual_seed(0)
        self.network.load_state_dict(weights)
        hook = self.network.register_forward_pre_hook(changed)
        try:
            return metrics_of(self.module, self.network, self.part, (self.metric,))[0][self.metric.name]
        finally:
            hook.remove()

    def range(self, weights: dict[str, Tensor]) -> _Range | None:
        """What `evaluate()` makes of images; None where it is not one factor and one offset for all pixels."""
        import numpy as np

        if isinstance(self.part, Path):
            return None
        images = np.zeros((_PROBED, *self.part[0].shape[1:]), np.uint8)
        images.reshape(-1)[:] = np.arange(images.size) % 256
        given: list[Any] = []
        probe = replace(self, part=(images, self.part[1][:1].repeat(_PROBED)))

        def keep(prepared: Tensor) -> Tensor:
            given.append(prepared.clone())
            return prepared

        probe.score(weights, keep)
        made = np.concatenate([one.double().numpy().reshape(-1) for one in given]) if given else np.zeros(0)
        if made.size != images.size:
            return None
        black, white = float(made[0]), float(made[255])
        straight = black + (white - black) * (images.reshape(-1) / 255)
        same = white != black and np.allclose(made, straight, atol=1e-4 * abs(white - black))
        return _Range(black, white) if same else None


def other_scores(
    request: ScoringRequest, cache: ScoringCache, _mark: Callable[[bytes], object]
) -> dict[str, Any]:
    """The answer to a request for a run whose score has to be explained: `{"others": […]}`, see `OtherScore`.

    Args: as `run_scoring.score_run`. Nothing is marked: whatever fails here, the run keeps the score it has.
    """
    last_start = time.monotonic() + _LAST_START_S
    module = cache.module(request)
    _, part = cache.parts(request)
    if not isinstance(part, Path):
        images, labels = part
        step = -(-len(labels) // NUM_SAMPLES)
        part = images[::step], labels[::step]
    network = fresh_network(module, request.model_size)
    expected, outputs = network.state_dict(), Path(request.outputs)
    weights = load_weights(outputs, expected).tensors
    metric = next(metric for metric in request.measured if metric.name == request.explain)
    trial = _Trial(module, network, part, metric)
    num_samples = request.num_validation if isinstance(part, Path) else len(part[1])
    found = []
    for one in _tried(trial, weights, outputs, expected):
        if math.isfinite(one.value):
            found.append(asdict(replace(one, num_samples=num_samples)))
        if time.monotonic() > last_start:
            break
    return {"others": found}


def _tried(
    trial: _Trial, weights: dict[str, Tensor], outputs: Path, expected: dict[str, Tensor]
) -> Iterator[OtherScore]:
    """The task's own way, then what goes wrong most often: time may end before all is tried."""
    scored = trial.range(weights)

    def other(change: Change, way: str, value: float, given: _Range | None = scored) -> OtherScore:
        black, white = (given.black, given.white) if given is not None else (None, None)
        return OtherScore(change, way, value, 0, black, white, trial.metric.name)

    yield other(Change.NOTHING, "the task's own way", trial.score(weights))
    yield other(Change.MODE, "training mode", trial.score(weights, trains=True))
    images = trial.part[0] if not isinstance(trial.part, Path) else None
    if scored is not None and images is not None:
        for name, given in _ranges(images, scored):
            yield other(Change.RANGE, name, trial.score(weights, scored.into(given)), given)
    for path, others in _saved(outputs, expected):
        yield other(Change.WEIGHTS, path, trial.score(others))
    if scored is not None and images is not None:
        for name, way in _layouts(images, scored):
            yield other(Change.LAYOUT, name, trial.score(weights, way))


def _ranges(images: NDArray[np.uint8], scored: _Range) -> Iterator[tuple[str, _Range]]:
    """Other preparations than the scored one, by name."""
    own = ("the mean and standard deviation of these images", images.mean() / 255, images.std() / 255)
    for name, mean, deviation in (*_KNOWN, own):
        given = _Range((0 - mean) / deviation, (1 - mean) / deviation) if deviation else scored
        apart = abs(given.black - scored.black) + abs(given.white - scored.white)
        if apart > 0.01 * abs(scored.white - scored.black):
            yield name, given


def _layouts(images: NDArray[np.uint8], scored: _Range) -> Iterator[tuple[str, Prepared]]:
    yield "white for black", lambda given: scored.black + scored.white - given
    height, width = images.shape[1:3]
    if height == width:
        yield (
            "rows for columns",
            lambda given: given.transpose(-1, -2) if given.shape[-2:] == (height, width) else given,
        )


def _saved(outputs: Path, expected: dict[str, Tensor]) -> Iterator[tuple[str, dict[str, Tensor]]]:
    """Weights of the same network in other files of the output folder and of its folders, last names first."""
    names = [entry.name for entry in _entries(outputs) if entry.is_file(follow_symlinks=False)]
    for folder in _entries(outputs):
        if folder.is_dir(follow_symlinks=False):
            inside = _entries(outputs / folder.name)
            names += [f"{folder.name}/{one.name}" for one in inside if one.is_file(follow_symlinks=False)]
    wanted = [n for n in names if n.endswith(_SAVED) and n not in ARTIFACTS and re.fullmatch(r"[ -~]+", n)]
    for name in sorted(wanted, key=_natural, reverse=True)[:MAX_FILES]:
        path = outputs / name
        try:
            content = read_plain_file(path.parent, path.name, MAX_FILE_BYTES)
            if content is not None:
                yield name, load_checkpoint(content, path.name, expected).tensors
        except RefusedError:
            continue


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        return sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return []


def _natural(name: str) -> tuple[list[str], list[int]]:
    """Sorts `epoch10.pt` behind `epoch9.pt`."""
    return re.split(r"\d+", name), [int(digits[:18]) for digits in re.findall(r"\d+", name)]
