"""The plain tensors behind those that `torch.func`'s transforms (`grad`, `vmap`, …) hand to a function.

Tensors inside a transform stand for plain ones: they have no memory that could be read, and what is computed with them
becomes part of what the transform makes. Nothing of ours may: what we look at is the value behind, from outside.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any


def _none() -> int:
    return 0


_functorch: Any = None
depth: Callable[[], int] = _none
"""How many transforms are on their way."""
outside: Callable[[], AbstractContextManager[None]]
"""Within it, what is computed with plain tensors is none of the transforms' business."""


def install() -> None:
    """Learn from torch how to look behind its transforms."""
    global _functorch, depth, outside
    import torch

    _functorch = torch._C._functorch
    depth, outside = _functorch.get_dynamic_layer_stack_depth, torch._C._DisableFuncTorch


def stands_for_another(tensor: Any) -> bool:
    """Whether a tensor is a transform's, which stands for another one."""
    return _functorch is not None and bool(_functorch.is_functorch_wrapped_tensor(tensor))


def plain(tensor: Any) -> Any:
    """The value behind a tensor, with the dimensions that transforms map over, wherever they lie; itself, if plain."""
    while tensor is not None and stands_for_another(tensor):
        tensor = _functorch.get_unwrapped(tensor)
    return tensor


def samples(tensor: Any) -> Any:
    """The value behind a batch, samples first; None where it can't be told which dimensions these are in.

    Who maps over samples by `vmap` gives the network one at a time: a batch of one, or a single row of numbers.
    """
    places, given = list(range(tensor.dim())), tensor
    while stands_for_another(tensor):
        if _functorch.is_batchedtensor(tensor):
            places.insert(_functorch.maybe_get_bdim(tensor), -1)
        tensor = _functorch.get_unwrapped(tensor)
    mapped = [place for place, dimension in enumerate(places) if dimension < 0]
    if not mapped:
        return tensor
    if given.dim() > 1 and given.shape[0] != 1:
        return None
    others = [place for place, dimension in enumerate(places) if dimension >= 0]
    with outside():
        value = tensor.detach().permute(*mapped, *others)
        return value.flatten(0, len(mapped) if given.dim() > 1 else len(mapped) - 1)
