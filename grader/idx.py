"""The IDX file format of MNIST and FashionMNIST: big-endian header, then unsigned bytes.

Reads and writes whole small files; refuses what is not exactly as long as its header says.
"""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_IMAGES, _LABELS = 2051, 2049


def images_bytes(images: NDArray[np.uint8]) -> bytes:
    """Content of an `-images-idx3-ubyte` file; images: uint8, shape (N, height, width)."""
    return struct.pack(">IIII", _IMAGES, *images.shape) + np.ascontiguousarray(images).tobytes()


def labels_bytes(labels: NDArray[np.integer]) -> bytes:
    """Content of an `-labels-idx1-ubyte` file; labels: integers 0–255, shape (N,)."""
    return struct.pack(">II", _LABELS, len(labels)) + labels.astype(np.uint8).tobytes()


def read_split(raw: Path, split: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """One split, `train` or `t10k`, of a `FashionMNIST/raw` folder, plain or as `.gz`.

    Returns:
        Images, uint8 (N, height, width), and labels, int64 (N,).

    Raises:
        OSError: a file is missing or unreadable.
        ValueError: a file is not what its name says.
    """
    images = _read(raw / f"{split}-images-idx3-ubyte", _IMAGES, dimensions=3)
    labels = _read(raw / f"{split}-labels-idx1-ubyte", _LABELS, dimensions=1)
    if len(images) != len(labels):
        raise ValueError(f"{raw}: {split} has {len(images)} images but {len(labels)} labels")
    return images, labels.astype(np.int64)


def _read(path: Path, magic: int, dimensions: int) -> NDArray[np.uint8]:
    if path.is_file():
        content = path.read_bytes()
    else:
        with gzip.open(path.with_name(path.name + ".gz")) as file:
            content = file.read()
    size = 4 + 4 * dimensions
    if len(content) < size or struct.unpack(">I", content[:4])[0] != magic:
        raise ValueError(f"{path} is not an IDX file of {dimensions} dimension(s)")
    shape = struct.unpack(f">{dimensions}I", content[4:size])
    expected = size + int(np.prod(shape, dtype=np.int64))
    if len(content) != expected:
        raise ValueError(f"{path} has {len(content):,} bytes; its header promises {expected:,}")
    return np.frombuffer(content, dtype=np.uint8, offset=size).reshape(shape)
