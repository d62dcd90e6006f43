"""Print what there is of images: a table for people, JSON for programs. Computes nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from grader.run.images import ImageState


def print_images(states: Sequence[ImageState], on_disk_bytes: int, *, as_json: bool) -> None:
    """One line per image, and what they take together: what several share counts once."""
    if as_json:
        listed = [asdict(state) for state in states]
        print(json.dumps({"schema": 1, "images": listed, "on_disk_bytes": on_disk_bytes}, indent=2))
        return
    for state in states:
        size = (
            ""
            if state.size_bytes is None
            else f"{_gb(state.size_bytes)}, {_gb(state.shared_bytes or 0)} of it shared"
        )
        old = f"  ({len(state.old)} older)" if state.old else ""
        print(f"{state.name:32}  {state.state:11}  {size}{old}")
    print(f"together {_gb(on_disk_bytes)} on disk")


def print_removed(removed: Sequence[str], kept: Sequence[str], *, as_json: bool) -> None:
    """What was removed, and what a container still uses."""
    if as_json:
        print(json.dumps({"schema": 1, "removed": removed, "kept": kept}, indent=2))
        return
    for name in removed:
        print(f"{name}  removed")
    for name in kept:
        print(f"{name}  stays: a container uses it")
    if not removed and not kept:
        print("There are no images of earlier versions.")


def _gb(size: int) -> str:
    return f"{size / 1e9:.2f} GB"
