"""Whole tensors that a rank keeps beside the shards of its model: as many as would be copies of nearly all of it.

A rank that holds shards, and copies of the whole in lists of its own, has divided nothing. Looks once at which tensors
there are, by their shapes; reads no values and keeps none alive.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterable
from typing import Any

from grader.probe.models.fingerprints import is_sharded

_MOST = 8
"""Copies of one parameter that are counted."""
_NEARLY = 0.9
"""Share of the numbers of a model that copies of it have: a shape that a batch or a sum happens to have is less."""


def whole_copies(params: Iterable[Any]) -> tuple[int, int]:
    """How often this rank holds nearly the whole of these parameters as plain tensors, and the bytes of these.

    Counted are those of which it holds a part as a parameter. Parameters of other models, such as a teacher, are none
    of it, nor is memory that a unit has let go of, or tensors on another kind of device.
    """
    import torch

    parts = [p for p in params if is_sharded(p) and p.to_local().numel() < p.numel()]
    wanted = Counter((tuple(p.shape), p.device.type) for p in parts)
    if not wanted:
        return 0, 0
    shapes = {len(shape) for shape, _ in wanted}
    found: dict[tuple[int, int], tuple[tuple[tuple[int, ...], str], int]] = {}
    for thing in gc.get_objects():
        # Not `isinstance`, which asks objects for their class and may wake what is loaded when it is asked for.
        if type(thing) is not torch.Tensor or thing.dim() not in shapes or not thing.is_floating_point():
            continue
        kind = (tuple(thing.shape), thing.device.type)
        if kind in wanted and thing.layout is torch.strided:
            size = thing.numel() * thing.element_size()
            if 0 < size <= thing.untyped_storage().nbytes():
                # Two views of the same numbers are one.
                found[thing.data_ptr(), size] = kind, size
    there = Counter(kind for kind, _ in found.values())
    total = sum(p.numel() for p in parts)
    copies = 0
    for often in range(1, _MOST + 1):
        covered = sum(_numel(kind) * min(there[kind], often * num) for kind, num in wanted.items())
        if covered < _NEARLY * often * total:
            break
        copies = often
    return copies, sum(size for _, size in found.values()) if copies else 0


def _numel(kind: tuple[tuple[int, ...], str]) -> int:
    numbers = 1
    for length in kind[0]:
        numbers *= length
    return numbers
