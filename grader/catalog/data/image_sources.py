"""Where a set of images comes from, and how its samples are dealt out to train, validation and hidden split.

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

from grader.catalog.data.versions import SEED
from grader.errors import InfraError, UsageError
from grader.idx import images_bytes, labels_bytes

_RAW = Path("FashionMNIST") / "raw"
_FEWEST = 10

NUM_DIGITS_HIDDEN, NUM_DIGITS_VALIDATION = 359, 239
"""Of 1,797. Odd on purpose, as are all of our splits: a sampler's padding must be visible with two ranks."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Images, uint8 (N, height, width), and labels, int64 (N,)."""

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


def taken_from(source: Path) -> Splits:
    """Images of one size with labels, taken from what `image_files` can read.

    What is there for testing becomes the hidden split and a fifth of the rest the validation split; where nothing says
    which is which, a fifth of all becomes the hidden split.

    Raises:
        UsageError: nothing there can be read, or it is damaged or too little.
    """
    from grader.catalog.data.image_files import read_images

    found = read_images(source)
    everything = Samples(*found.train)
    if found.test is not None:
        hidden = Samples(*found.test)
    else:
        everything, hidden = _deal(everything, len(everything) // 10 * 2 - 1)
    if len(everything) < _FEWEST or not len(hidden):
        raise UsageError(
            f"The data in {source} cannot be used: {len(everything)} training and {len(hidden)} test images."
        )
    if everything.images.shape[1:] != hidden.images.shape[1:]:
        raise UsageError(f"The data in {source} cannot be used: training and test images differ in size.")
    taken = set(hidden.keys())
    kept = [n for n, key in enumerate(everything.keys()) if key not in taken]
    train, validation = _deal(everything.take(kept), len(kept) // 10 * 2 - 1)
    return Splits(train, validation, hidden, len(everything) - len(kept), found.what)


def as_fashion_mnist(splits: Splits, source: Path) -> Splits:
    """The same where it is as FashionMNIST is: ten classes, 28x28.

    Raises:
        UsageError: it is not; a task that brings its own images along says so with `prepare = "images"`.
    """
    for part in (splits.train, splits.validation, splits.hidden):
        height, width = part.images.shape[1:]
        if (height, width) != (28, 28):
            raise UsageError(
                f"The data in {source} cannot be used: its images are {height}x{width}, not 28x28."
            )
        if part.labels.max() > 9:
            label = part.labels.max()
            raise UsageError(
                f"The data in {source} cannot be used: it has the label {label}; labels are 0 to 9."
            )
    return splits


def write_splits(splits: Splits, folder: Path) -> list[str]:
    """Write both sides below a folder in FashionMNIST's layout; returns the paths that were written, in this order."""
    paths = []
    for side, split, samples in (
        ("visible", "train", splits.train),
        ("visible", "t10k", splits.validation),
        ("hidden", "t10k", splits.hidden),
    ):
        for name, content in (
            (f"{split}-images-idx3-ubyte", images_bytes(samples.images)),
            (f"{split}-labels-idx1-ubyte", labels_bytes(samples.labels)),
        ):
            path = Path(side) / _RAW / name
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
            paths.append(path.as_posix())
    return paths


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
    splits = as_fashion_mnist(taken_from(cache), cache)
    return Splits(
        splits.train, splits.validation, splits.hidden, splits.num_dropped, "torchvision's FashionMNIST"
    )


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
