"""How much of what the ranks step on came from each of them.

What a rank's backward passes gave to a few parameters is known at the steps that are looked at, and so is what all step
on. An average is a weighted sum, and fingerprints of a sum are sums of fingerprints: the weights follow by least
squares. Clipping and scaling multiply a whole step by one number, which is found along with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grader.model.trace import Step

FEWEST_LOOKS = 7
_ROUNDS = 8
_UNEXPLAINED = 0.05
"""What may be left of what is stepped on that no weighted sum explains; it is 0.0001 where gradients are averaged."""
_ALIKE = 1e-3
"""Ranks whose gradients differ by less than this share of their size: whose they were cannot be told."""


def average_shares(looks: Sequence[Sequence[Step]]) -> tuple[float, ...] | None:
    """The share of each rank in what all of them stepped on; together 1.

    None where it is no weighted sum of what they computed, or that cannot be told.

    Args:
        looks: for each step that was looked at those of all ranks, which told `own` and `grads` of equal parameters.
    """
    if len(looks) < FEWEST_LOOKS:
        return None
    stepped = [look[0].grads or () for look in looks]
    whole = [[step.own or () for step in look] for look in looks]
    # Where earlier passes of a step only prepared the last one.
    last = [[step.own_last or () for step in look] for look in looks]
    return _fitted(stepped, whole) or _fitted(stepped, last)


def _fitted(stepped: Sequence[Any], given: Sequence[Sequence[Any]]) -> tuple[float, ...] | None:
    import numpy as np

    target = np.array(stepped, dtype=float)  # look, parameter
    parts = np.array(given, dtype=float)  # look, rank, parameter
    if target.ndim != 2 or parts.ndim != 3 or not (np.isfinite(target).all() and np.isfinite(parts).all()):
        return None
    # Every parameter counts alike, however large its gradients are.
    sizes = np.sqrt((target**2).mean(axis=0))
    target, parts = target[:, sizes > 0] / sizes[sizes > 0], parts[:, :, sizes > 0] / sizes[sizes > 0]
    if not target.size:
        return None
    scales, fit, weights = np.ones(len(target)), np.zeros_like(target), np.zeros(parts.shape[1])
    for _ in range(_ROUNDS):
        rows = (parts * scales[:, None, None]).transpose(0, 2, 1).reshape(-1, parts.shape[1])
        weights, _, _, spread = np.linalg.lstsq(rows, target.reshape(-1), rcond=None)
        fit = np.einsum("lrp,r->lp", parts, weights)
        squares = (fit**2).sum(axis=1)
        if spread[-1] < _ALIKE * spread[0] or not (squares > 0).all():
            return None
        scales = (target * fit).sum(axis=1) / squares
    left = np.linalg.norm(target - scales[:, None] * fit) / np.linalg.norm(target)
    total = float(weights.sum())
    if left > _UNEXPLAINED or not total > 0:
        return None
    return tuple(float(weight) / total for weight in weights)
