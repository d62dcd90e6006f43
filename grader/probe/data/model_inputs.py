"""What a model is given: the tensor that stands for its batch."""

from __future__ import annotations

from typing import Any

from grader.probe.hooks import transforms


def batch_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The first tensor among a call's arguments, also one level inside lists and dictionaries; None without one.

    Within transforms of `torch.func` the value behind it, samples first; None where it can't be told what these are.
    """
    found = _first_tensor(args, kwargs)
    return transforms.samples(found) if transforms.depth() and found is not None else found


def _first_tensor(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from torch import Tensor

    for value in (*args, *kwargs.values()):
        if isinstance(value, Tensor):
            return value
        if isinstance(value, (list, tuple, dict)):
            parts = value.values() if isinstance(value, dict) else value
            for part in parts:
                if isinstance(part, Tensor):
                    return part
    return None
