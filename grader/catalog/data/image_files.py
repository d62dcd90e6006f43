"""Read images with labels from what people have: FashionMNIST's own files, a folder for each class, arrays, a table.

Images become grey, one byte for each pixel; all of a set have one size. Divides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from grader.errors import UsageError
from grader.idx import read_split

_SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
_TEST_FOLDERS = ("test", "val", "validation")
_NAMES = {
    "train": (("images", "labels"), ("x_train", "y_train"), ("x", "y"), ("train_images", "train_labels")),
    "test": (("x_test", "y_test"), ("test_images", "test_labels")),
}
_MOST_CLASSES = 256
"""Labels are written as bytes."""

Part: TypeAlias = "tuple[NDArray[np.uint8], NDArray[np.int64]]"


@dataclass(frozen=True, slots=True)
class ImageFiles:
    """What was read: uint8 (N, height, width) with int64 (N,) for training and, where it is told apart, for testing."""

    train: Part
    test: Part | None
    what: str


def read_images(source: Path) -> ImageFiles:
    """The images of a file or folder.

    Args:
        source: a folder in FashionMNIST's layout; a folder of class folders, perhaps below `train` and `test`; an
            `.npz` of `images` and `labels`, or of `x_train`, `y_train`, `x_test` and `y_test`; a folder of `images.npy`
            and `labels.npy`; a `.csv` whose first column is the label and whose others are the pixels of a square.

    Raises:
        UsageError: it is none of these, or damaged.
    """
    try:
        found = _read(source)
        for part in (found.train, *((found.test,) if found.test else ())):
            _check(part)
    except (OSError, ValueError, EOFError, KeyError) as error:
        raise UsageError(f"The data in {source} cannot be used: {error}.") from None
    return found


def _read(source: Path) -> ImageFiles:
    if source.is_file():
        if source.suffix == ".npz":
            with np.load(source, allow_pickle=False) as arrays:
                return _arrays({name: arrays[name] for name in arrays.files}, source)
        if source.suffix == ".csv":
            return ImageFiles(_table(source), None, "a table of pixels")
        raise UsageError(f"{source} is neither .npz nor .csv nor a folder.")
    raw = next((p for p in (source / "FashionMNIST" / "raw", source / "raw", source) if _has_train(p)), None)
    if raw is not None:
        return ImageFiles(
            read_split(raw, "train"), read_split(raw, "t10k"), "a folder in FashionMNIST's layout"
        )
    arrays = {path.stem: path for path in source.glob("*.npy")}
    if arrays:
        return _arrays({n: np.load(path, allow_pickle=False) for n, path in arrays.items()}, source)
    if (source / "train").is_dir():
        train = source / "train"
        test = next((source / name for name in _TEST_FOLDERS if (source / name).is_dir()), None)
        classes = _classes(train, *(() if test is None else (test,)))
        tested = None if test is None else _pictures(test, classes)
        return ImageFiles(_pictures(train, classes), tested, "folders of pictures")
    classes = _classes(source)
    if not classes:
        raise UsageError(
            f"{source} holds no images with labels: neither FashionMNIST's files (train-images-idx3-ubyte), nor "
            "images.npy with labels.npy, nor a folder of pictures for each class."
        )
    return ImageFiles(_pictures(source, classes), None, "folders of pictures")


def _has_train(raw: Path) -> bool:
    return any((raw / f"train-images-idx3-ubyte{suffix}").is_file() for suffix in ("", ".gz"))


def _arrays(arrays: dict[str, NDArray[np.generic]], source: Path) -> ImageFiles:
    parts: dict[str, Part] = {}
    for split, pairs in _NAMES.items():
        for images, labels in pairs:
            if split not in parts and images in arrays and labels in arrays:
                parts[split] = _bytes(arrays[images]), arrays[labels].reshape(-1).astype(np.int64)
    if "train" not in parts:
        raise UsageError(
            f"{source} holds {', '.join(sorted(arrays))}: call the arrays `images` and `labels`."
        )
    return ImageFiles(parts["train"], parts.get("test"), "NumPy arrays")


def _bytes(images: NDArray[np.generic]) -> NDArray[np.uint8]:
    if images.dtype != np.uint8:
        raise ValueError(f"the images are {images.dtype}; they have to be bytes, uint8")
    # A channel of its own says nothing where there is one.
    squeezed = images.reshape(images.shape[0], *(size for size in images.shape[1:] if size != 1))
    if squeezed.ndim != 3:
        raise ValueError(f"the images have the shape {images.shape}; it has to be (number, height, width)")
    return squeezed.astype(np.uint8)


def _table(path: Path) -> Part:
    with path.open(encoding="utf-8") as file:
        first = file.readline()
    header = not first.partition(",")[0].strip().isdigit()
    values = np.loadtxt(path, delimiter=",", skiprows=int(header), dtype=np.int64, ndmin=2)
    side = round((values.shape[1] - 1) ** 0.5)
    if side * side != values.shape[1] - 1:
        raise ValueError(f"{values.shape[1] - 1} columns behind the label are not the pixels of a square")
    if values[:, 1:].min() < 0 or values[:, 1:].max() > 255:
        raise ValueError("a pixel is not between 0 and 255")
    return values[:, 1:].astype(np.uint8).reshape(-1, side, side), values[:, 0]


def _classes(*folders: Path) -> dict[str, int]:
    """A number for the folder of each class, by name."""
    names = {
        p.name for folder in folders for p in folder.iterdir() if p.is_dir() and not p.name.startswith(".")
    }
    return {name: number for number, name in enumerate(sorted(names))}


def _pictures(folder: Path, classes: dict[str, int]) -> Part:
    from PIL import Image

    images: list[NDArray[np.uint8]] = []
    labels: list[int] = []
    first: Path | None = None
    for name, label in classes.items():
        for path in sorted((folder / name).glob("*")):
            if path.suffix.lower() not in _SUFFIXES:
                continue
            with Image.open(path) as picture:
                image = np.asarray(picture.convert("L"), dtype=np.uint8)
            first = first or path
            if images and image.shape != images[0].shape:
                raise ValueError(
                    f"{path} has {image.shape[0]} rows of {image.shape[1]} pixels and {first} {images[0].shape[0]} of "
                    f"{images[0].shape[1]}; all images of a set have one size"
                )
            images.append(image)
            labels.append(label)
    if not images:
        raise ValueError(f"there are no pictures in the folders of {folder}")
    return np.stack(images), np.array(labels, dtype=np.int64)


def _check(part: Part) -> None:
    images, labels = part
    if len(images) != len(labels):
        raise ValueError(f"there are {len(images)} images and {len(labels)} labels")
    if len(labels) and not 0 <= labels.min() <= labels.max() < _MOST_CLASSES:
        raise ValueError(f"labels are whole numbers from 0 to {_MOST_CLASSES - 1}")
