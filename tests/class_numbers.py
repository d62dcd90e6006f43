"""Class numbers that are the same whenever tests run: what a promise's training comes to is no matter of the day."""

from __future__ import annotations

from pathlib import Path


def keep_class_numbers(state_dir: Path) -> None:
    """Give a state folder of the tests the same key as all others."""
    (state_dir / "class_labels.key").write_bytes(b"all tests meet the same numbers")
