"""Hold what models were given in training against the data set's images: whether validation images are among it.

A picture is one of those where next to nothing is between them once mean and contrast are taken away, and by far less
than between it and any training image. A blend is one of a validation image and any other, if no two training images
blend to the like. So what augmentation, mixing or cutting makes of training images never is, nor an image that lies in
both splits. Runs in the scorer's child: pictures were told by the learner's own processes.
"""

from __future__ import annotations

import time
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from grader.evaluate.scorer.run_scoring import ScoringCache, ScoringRequest
from grader.model.evaluation import ComparedPictures

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

WALL_S = 10.0
"""Time after which comparing is given up."""
MOST_PICTURES = 512
"""Of a run, all ranks and looks alike: a second's work with 70,000 images."""
_NEAR = 0.05
"""1 − correlation with an image that a picture may be."""
_NEARER = 0.25
"""The same, as a share of what it is with the nearest training image."""
_ROUNDING = 1e-4
"""What numbers from 0 to 255 leave between a picture and its image; less is told as this."""
_CHUNK = 1 << 12
_FEWEST_BLENDS, _MOST_BLENDS = 16, 128
"""Pictures of which it is asked what they were blended of: fewer where images are many."""
_FIRST = 16
"""Images that are nearest to a picture; one of them is part of its blend. Fewer where images are many."""
_MOST_PAIRS = 1 << 22
"""First image and other one, of all pictures: some tenths of a second's work."""
_NEAR_BLEND = 0.01
"""What a blend may leave of a picture."""
_LEAST_PART = 0.2
"""Weight of the validation image in a blend."""


def compared_pictures(
    request: ScoringRequest, cache: ScoringCache, _mark: Callable[[bytes], object]
) -> dict[str, Any]:
    """The answer to a request for a run that told pictures: `{"pictures": […]}`, see `ComparedPictures`.

    Args: as `run_scoring.score_run`. Pictures of another size than the images, and such without any contrast, are
        left out.
    """
    import torch

    began = time.monotonic()
    train, _ = cache.split(request.visible, request, "train")
    validation, _ = cache.split(request.visible, request)
    ranks, rows = [], []
    for look in request.told_pictures:
        found = _shapes(_pictures(look, train[0].size, MOST_PICTURES // len(request.told_pictures)))
        ranks += [look["rank"]] * len(found)
        rows.append(found)
    if not ranks:
        return {"pictures": []}
    pictures = torch.cat(rows)
    near = _distances(pictures, validation)
    some = (near < _NEAR).nonzero()[:, 0]
    found = some[near[some] < _NEARER * _distances(pictures[some], train)]
    compared, of_validation = Counter(ranks), Counter(ranks[n] for n in found.tolist())
    most = _MOST_PAIRS // (_FIRST * (len(train) + len(validation)))
    spread = -(-len(pictures) // min(max(most, _FEWEST_BLENDS), _MOST_BLENDS))
    asked = sorted({*range(0, len(pictures), spread)} - {*found.tolist()})
    if time.monotonic() - began > WALL_S / 4:
        asked = []  # what has been found is not lost where the machine is too busy for more
    blends = _blends(pictures[asked], (train, validation))
    blended = Counter(ranks[n] for n, blend in zip(asked, blends, strict=True) if blend)
    counts = (
        ComparedPictures(rank, num, of_validation[rank], blended[rank])
        for rank, num in sorted(compared.items())
    )
    return {"pictures": [asdict(one) for one in counts]}


def _pictures(look: dict[str, Any], size: int, most: int) -> Tensor:
    """At most so many of a look, evenly spread and without colours; none where they are no pictures of that size."""
    import torch

    try:
        dtype = torch.int16 if look["text"] else torch.uint8
        values = torch.frombuffer(bytearray(b64decode(look["values"], validate=True)), dtype=dtype)
        pictures = values.reshape(look["num"], -1, size)
    except (ValueError, RuntimeError):
        return torch.zeros(0, size)
    colourless: Tensor = pictures[:: -(-len(pictures) // max(1, most))].float().mean(1)
    return colourless


def _shapes(rows: Tensor) -> Tensor:
    """Rows without mean and contrast; those that have no contrast are left out."""
    import torch

    rows = rows - rows.mean(1, keepdim=True)
    norms = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    some = norms[:, 0] > 1
    shapes: Tensor = rows[some] / norms[some]
    return shapes


def _distances(pictures: Tensor, images: NDArray[np.uint8]) -> Tensor:
    """1 − correlation of each picture with the image that is nearest to it."""
    import torch

    nearest = torch.full((len(pictures),), -1.0)
    for chunk in _chunks(images):
        if len(chunk) and len(pictures):
            nearest = torch.maximum(nearest, (pictures @ chunk.T).amax(1))
    return (1 - nearest).clamp(min=_ROUNDING)


def _blends(pictures: Tensor, splits: tuple[NDArray[np.uint8], NDArray[np.uint8]]) -> list[bool]:
    """Whether each picture is a blend with a validation image.

    Args:
        pictures: without mean and contrast; splits: images for training and those for validation.
    """
    import torch

    if not len(pictures):
        return []
    chunks = [(chunk, bool(of)) for of, images in enumerate(splits) for chunk in _chunks(images)]
    near = torch.cat([pictures @ chunk.T for chunk, _ in chunks], 1)
    x, first = near.topk(min(_FIRST, near.shape[1], max(1, _MOST_PAIRS // near.numel())), 1)
    held = torch.cat([torch.full((len(chunk),), of) for chunk, of in chunks])[first]
    firsts, before = torch.zeros(*first.shape, pictures.shape[1]), 0
    for chunk, _ in chunks:
        inside = (first >= before) & (first < before + len(chunk))
        firsts[inside] = chunk[first[inside] - before]
        before += len(chunk)
    left = torch.where(held, 1.0, 1 - x.square()).amin(1)
    left_by_held = torch.ones(len(pictures))
    for chunk, of_held in chunks:
        # The least squares of x·first + y·other, in closed form: all have length 1.
        y, both = (pictures @ chunk.T)[:, None], firsts @ chunk.T
        apart = (1 - both.square()).clamp(min=1e-4)
        a, b = (x[:, :, None] - both * y) / apart, (y - both * x[:, :, None]) / apart
        rest = torch.where((a > 0) & (b > 0), 1 - a * x[:, :, None] - b * y, 1.0).clamp(min=_ROUNDING)
        part = (b * of_held + a * held[:, :, None]) / (a + b)
        left = torch.minimum(left, torch.where(part == 0, rest, 1.0).amin((1, 2)))
        left_by_held = torch.minimum(left_by_held, torch.where(part >= _LEAST_PART, rest, 1.0).amin((1, 2)))
    found: list[bool] = ((left_by_held < _NEAR_BLEND) & (left_by_held < _NEARER * left)).tolist()
    return found


def _chunks(images: NDArray[np.uint8]) -> Iterator[Tensor]:
    import torch

    for first in range(0, len(images), _CHUNK):
        part = torch.from_numpy(images[first : first + _CHUNK].copy())
        yield _shapes(part.flatten(1).float())
