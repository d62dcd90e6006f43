"""NumPy arrays whose first dimension counts samples: `<name>.npy` in `train`, `validation` and `hidden`, to be mapped.

An `.npy` is one array called `data`; an `.npz`, or a folder of `.npy`, has several of one length.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from grader.catalog.tasks.shares import divided, folders_of
from grader.errors import UsageError


def prepare(out: Path, source: Path) -> dict[str, int]:
    """Divide the rows; rows that are equal in all arrays fall on one side."""
    arrays = _read(source)
    sizes = {len(array) for array in arrays.values()}
    if len(sizes) != 1:
        found = ", ".join(f"{name}: {len(array)}" for name, array in arrays.items())
        raise UsageError(f"The arrays in {source} differ in length ({found}); row i of each is sample i.")
    rows = (b"".join(a[i].tobytes() for a in arrays.values()) for i in range(sizes.pop()))
    split = divided(rows, source)
    for part, folder in folders_of(out).items():
        folder.mkdir(parents=True, exist_ok=True)
        for name, array in arrays.items():
            np.save(folder / f"{name}.npy", array[split[part]])
    return {part: len(indices) for part, indices in split.items()}


def _read(source: Path) -> dict[str, NDArray[np.generic]]:
    try:
        if source.suffix == ".npy":
            return {"data": np.load(source, allow_pickle=False)}
        if source.suffix == ".npz":
            with np.load(source, allow_pickle=False) as arrays:
                return {name: arrays[name] for name in arrays.files}
        if found := sorted(source.glob("*.npy")):
            return {path.stem: np.load(path, allow_pickle=False) for path in found}
    except (OSError, ValueError) as error:
        raise UsageError(f"The arrays in {source} cannot be read: {error}.") from None
    raise UsageError(f"{source} is neither an .npy nor an .npz nor a folder of .npy files.")
