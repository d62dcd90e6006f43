"""Where a data set's samples come from, and how they are dealt out to train, validation and hidden split.

Every choice hangs on a hash of the image and a fixed seed, never on a library's random numbers: the same samples give
the same splits on every machine and version, and equal images always fall on the same side.
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from grader.errors import InfraError, UsageError
from grader.idx import read_split

SEED = "grader splits, 1"

NUM_DIGITS_HIDDEN, NUM_DIGITS_VALIDATION = 359, 239
"""Of 1,797. Odd on purpose, as are all of our splits: a sampler's padding must be visible with two ranks."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Images, uint8 (N, 28, 28), and labels, int64 (N,)."""

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    def keys(self) -> list[bytes]:
        """One hash per image: what makes two samples the same, whatever their labels."""
        salt = SEED.encode()
        return [hashlib.sha256(salt + image.tobytes()).digest() for image in self.images]

    def take(self, indices: list[int]) -> Samples:
        """The samples at these indices, in this order."""
        return Samples(self.images[indices], self.labels[indices])


@dataclass(frozen=True, slots=True)
class Splits:
    """The three sides, disjoint by image; num_dropped samples were left out because their image is on another side."""

    train: Samples
    validation: Samples
    hidden: Samples
    num_dropped: int
    source: str


def digits() -> Splits:
    """Handwritten digits that come with scikit-learn: 1,797 real images, 8x8, enlarged to 28x28."""
    from sklearn.datasets import load_digits

    loaded = load_digits()
    samples = Samples(enlarge(loaded.images.astype(np.int64)), loaded.target.astype(np.int64))
    rest, hidden = _deal(samples, NUM_DIGITS_HIDDEN)
    train, validation = _deal(rest, NUM_DIGITS_VALIDATION)
    return Splits(
        train,
        validation,
        hidden,
        0,
        "scikit-learn's load_digits (UCI optical recognition of handwritten digits)",
    )


def enlarge(images: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Bilinear enlargement of 8x8 images with values 0–16 to 28x28 with values 0–255.

    Whole numbers only, so that every machine writes the same bytes: with pixel centres at half steps the source
    coordinate of pixel i is (16 i − 20) / 56, and weights are counted in fifty-sixths.
    """
    weights = np.zeros((28, 8), dtype=np.int64)
    for i in range(28):
        place = min(max(16 * i - 20, 0), 7 * 56)
        low = min(place // 56, 6)
        weights[i, low + 1] = place - 56 * low
        weights[i, low] = 56 - weights[i, low + 1]
    scaled = np.einsum("ia,nab,jb->nij", weights, images, weights) * 255
    full = 16 * 56 * 56
    pixels: NDArray[np.uint8] = ((scaled + full // 2) // full).astype(np.uint8)
    return pixels


def folder(source: Path) -> Splits:
    """A folder in FashionMNIST's layout: its `t10k` becomes the hidden split, a fifth of `train` the validation split.

    Raises:
        UsageError: the folder has no such files, or they are damaged.
    """
    raw = next((p for p in (source / "FashionMNIST" / "raw", source / "raw", source) if _has_train(p)), None)
    if raw is None:
        raise UsageError(
            f"{source} is not in FashionMNIST's layout: no train-images-idx3-ubyte was found in {source}, in "
            f"{source / 'raw'} or in {source / 'FashionMNIST' / 'raw'}."
        )
    try:
        everything = Samples(*read_split(raw, "train"))
        hidden = Samples(*read_split(raw, "t10k"))
    except (OSError, ValueError, EOFError) as error:
        raise UsageError(f"The data in {raw} cannot be used: {error}.") from None
    if len(everything) < 10 or not len(hidden):
        raise UsageError(
            f"The data in {raw} cannot be used: {len(everything)} training and {len(hidden)} test images."
        )
    taken = set(hidden.keys())
    kept = [n for n, key in enumerate(everything.keys()) if key not in taken]
    train, validation = _deal(everything.take(kept), len(kept) // 10 * 2 - 1)
    return Splits(train, validation, hidden, len(everything) - len(kept), "a folder in FashionMNIST's layout")


def download(cache: Path) -> Splits:
    """FashionMNIST by torchvision's own download, which checks sums and keeps finished files when interrupted.

    Raises:
        InfraError: it could not be downloaded.
    """
    try:
        from torchvision.datasets import FashionMNIST

        cache.mkdir(parents=True, exist_ok=True)
        # What torchvision says about mirrors is progress, not a result.
        with contextlib.redirect_stdout(sys.stderr):
            FashionMNIST(str(cache), train=True, download=True)
    except (ImportError, OSError, RuntimeError) as error:
        raise InfraError(
            f"FashionMNIST could not be downloaded: {error}. Where there is no network, copy its four files from "
            "another machine and give their folder: grader data prepare fashion-mnist --from FOLDER"
        ) from error
    splits = folder(cache)
    return Splits(
        splits.train, splits.validation, splits.hidden, splits.num_dropped, "torchvision's FashionMNIST"
    )


def _has_train(raw: Path) -> bool:
    return any((raw / f"train-images-idx3-ubyte{suffix}").is_file() for suffix in ("", ".gz"))


def _deal(samples: Samples, num: int) -> tuple[Samples, Samples]:
    """Split off about `num` samples, the classes in proportion; copies of an image stay together.

    Returns the rest and what was split off, both in the order of `samples`.
    """
    keys = samples.keys()
    label_of: dict[bytes, int] = {}
    copies: dict[bytes, list[int]] = {}
    for n, key in enumerate(keys):
        label_of.setdefault(key, int(samples.labels[n]))
        copies.setdefault(key, []).append(n)
    by_class: dict[int, list[bytes]] = {}
    for key in sorted(copies):
        by_class.setdefault(label_of[key], []).append(key)
    # The nth of a class's m images stands at (n + 1/2) / m: taking the smallest places takes from all classes alike.
    places = sorted(
        ((n + 0.5) / len(group), label, key)
        for label, group in by_class.items()
        for n, key in enumerate(group)
    )
    taken: set[int] = set()
    for _, _, key in places:
        if len(taken) + len(copies[key]) <= num:
            taken.update(copies[key])
        if len(taken) == num:
            break
    rest = [n for n in range(len(samples)) if n not in taken]
    return samples.take(rest), samples.take(sorted(taken))
