"""Hold what models were given in training against the data set's images: whether validation images are among it.

A picture is one of those where next to nothing is between them once mean and contrast are taken away, and by far less
than between it and any training image. So what augmentation, mixing or cutting makes of training images never is,
nor an image that lies in both splits. Runs in the scorer's child: pictures were told by the learner's own processes.
"""

from __future__ import annotations

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

WALL_S = 5.0
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


def compared_pictures(
    request: ScoringRequest, cache: ScoringCache, _mark: Callable[[bytes], object]
) -> dict[str, Any]:
    """The answer to a request for a run that told pictures: `{"pictures": […]}`, see `ComparedPictures`.

    Args: as `run_scoring.score_run`. Pictures of another size than the images, and such without any contrast, are
        left out.
    """
    import torch

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
    counts = (ComparedPictures(rank, num, of_validation[rank]) for rank, num in sorted(compared.items()))
    return {"pictures": [asdict(one) for one in counts]}


def _pictures(look: dict[str, Any], size: int, most: int) -> Tensor:
    """At most so many of a look, evenly spread and without colours; none where they are no pictures of that size."""
    import torch

    try:
        values = torch.frombuffer(bytearray(b64decode(look["values"], validate=True)), dtype=torch.uint8)
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


def _chunks(images: NDArray[np.uint8]) -> Iterator[Tensor]:
    import torch

    for first in range(0, len(images), _CHUNK):
        part = torch.from_numpy(images[first : first + _CHUNK].copy())
        yield _shapes(part.flatten(1).float())
