"""CIFAR-10 as a site has it, in its Python batches: colour images and labels, to be mapped as arrays.

`train`, `validation` and `hidden` have `images.npy`, uint8 (N, 32, 32, 3), and `labels.npy`, int64 (N,), 0–9. All
batches are divided anew, the test batch among them: which of its images are hidden is told nowhere.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grader.catalog.tasks.shares import divided, folders_of
from grader.errors import UsageError

_BATCHES = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")
_PIXELS = 3 * 32 * 32
# What a batch is made of, in the spelling of old and new versions.
_KNOWN = frozenset({"ndarray", "dtype", "_reconstruct", "_frombuffer"})


class _Batch(pickle.Unpickler):
    """Reads arrays and plain values, and makes nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] == "numpy" and name in _KNOWN:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"it holds a {module}.{name}")


def prepare(out: Path, source: Path) -> dict[str, int]:
    """Divide the images; equal ones fall on one side."""
    folder = next(
        (place for place in (source, source / "cifar-10-batches-py") if (place / "test_batch").is_file()),
        None,
    )
    if folder is None:
        raise UsageError(
            f"{source} is not in CIFAR-10's layout: there is no test_batch and no cifar-10-batches-py in it."
        )
    read = [_read(folder / name) for name in _BATCHES if (folder / name).is_file()]
    images = np.concatenate([pixels for pixels, _labels in read])
    labels = np.concatenate([labels for _pixels, labels in read])
    split = divided((image.tobytes() for image in images), source)
    # The batches have one colour after the other.
    images = images.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    for part, place in folders_of(out).items():
        place.mkdir(parents=True, exist_ok=True)
        np.save(place / "images.npy", images[split[part]])
        np.save(place / "labels.npy", labels[split[part]])
    return {part: len(indices) for part, indices in split.items()}


def _read(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Pixels (N, 3072) and labels (N,) of one batch."""
    try:
        with path.open("rb") as file:
            batch = _Batch(file, encoding="bytes").load()
        pixels = np.asarray(batch[b"data"], dtype=np.uint8)
        labels = np.asarray(batch[b"labels"], dtype=np.int64)
    except (
        OSError,
        EOFError,
        pickle.UnpicklingError,
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
    ) as error:
        raise UsageError(f"{path} is no batch of CIFAR-10: {error}.") from None
    if pixels.ndim != 2 or pixels.shape[1] != _PIXELS or labels.shape != pixels.shape[:1]:
        raise UsageError(f"{path} is no batch of CIFAR-10: pixels {pixels.shape}, labels {labels.shape}.")
    if len(labels) and not 0 <= labels.min() <= labels.max() <= 9:
        raise UsageError(f"{path} is no batch of CIFAR-10: labels from {labels.min()} to {labels.max()}.")
    return pixels, labels
