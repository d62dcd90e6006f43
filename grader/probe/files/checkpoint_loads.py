"""Checkpoints as they are loaded: from where, by which line, and on which devices their tensors came to lie.

Looks at devices only, never at values.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from grader.probe.files import opened_files
from grader.probe.hooks import code_locations
from grader.probe.hooks.patches import outermost, replace
from grader.probe.trace import events
from grader.probe.trace.writer import writer

_MAX_EVENTS = 64
_MAX_TENSORS = 256

_num_events = 0


def _devices(value: Any) -> list[str]:
    """Devices of the tensors in a loaded object, two levels of dictionaries and lists deep."""
    from torch import Tensor

    found: dict[str, None] = {}
    work, left = [(value, 0)], _MAX_TENSORS
    while work and left:
        one, depth = work.pop()
        if isinstance(one, Tensor):
            left -= 1
            found[str(one.device)] = None
        elif depth < 3 and isinstance(one, Mapping):
            work.extend((inner, depth + 1) for inner in list(one.values())[:_MAX_TENSORS])
        elif depth < 3 and isinstance(one, (list, tuple)):
            work.extend((inner, depth + 1) for inner in one[:_MAX_TENSORS])
    return sorted(found)


def _loaded(
    result: Any, started_s: float, f: Any, map_location: Any = None, *_args: Any, **_kwargs: Any
) -> None:
    global _num_events
    site = code_locations.here()
    if site is None or _num_events >= _MAX_EVENTS:
        return  # a library reads its own files
    _num_events += 1
    name = f if isinstance(f, (str, os.PathLike)) else getattr(f, "name", "")
    path = os.fspath(name) if isinstance(name, (str, os.PathLike)) else ""
    shown, out = (
        opened_files.shown(path if isinstance(path, str) else os.fsdecode(path)) if path else ("", False)
    )
    writer.write(
        events.LOAD,
        path=shown,
        out=out,
        site=site,
        map_location=""
        if map_location is None
        else "callable"
        if callable(map_location)
        else str(map_location)[:200],
        devices=_devices(result),
        seconds=round(writer.now() - started_s, 6),
    )


def install() -> None:
    """Hook the function that reads checkpoints."""
    import torch

    replace([torch, torch.serialization], "load", outermost("load", _loaded))
