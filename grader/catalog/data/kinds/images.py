"""Images of one size with labels, in FashionMNIST's own layout: scripts read them as they read FashionMNIST."""

from __future__ import annotations

from pathlib import Path

from grader.catalog.data.image_sources import taken_from, write_splits


def prepare(out: Path, source: Path) -> dict[str, int]:
    """Divide what `sources.taken_from` can read."""
    splits = taken_from(source)
    write_splits(splits, out)
    return {"train": len(splits.train), "validation": len(splits.validation), "hidden": len(splits.hidden)}
