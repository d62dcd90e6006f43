"""Days of which a temperature follows from two others, and a little chance."""

from pathlib import Path

import numpy as np


def prepare(out: Path, source: Path | None, seed: str) -> dict[str, int]:
    """`train.npy` and `validation/days.npy` for scripts, `days.npy` for the scorer: rows of two inputs and a target."""
    rng = np.random.default_rng(7)
    known = rng.normal(size=(1024, 2))
    told = known @ [2.0, -1.0] + 0.1 * rng.normal(size=1024)
    days = np.column_stack([known, told]).astype(np.float32)
    (out / "visible" / "validation").mkdir(parents=True, exist_ok=True)
    (out / "hidden").mkdir(exist_ok=True)
    np.save(out / "visible" / "train.npy", days[:512])
    np.save(out / "visible" / "validation" / "days.npy", days[512:768])
    np.save(out / "hidden" / "days.npy", days[768:])
    return {"train": 512, "validation": 256, "hidden": 256}
