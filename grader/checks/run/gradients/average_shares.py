"""How much of what the ranks step on came from each of them.

What a rank's backward passes gave to a few parameters is known at the steps that are looked at, and so is what all step
on. An average is a weighted sum, and fingerprints of a sum are sums of fingerprints: the weights follow by least
squares. Clipping and scaling multiply a whole step by one number, which is found along with them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from grader.checks.run.gradients.own_gradients import FEWEST_STEPS
from grader.model.trace import Step

_Numbers: TypeAlias = Sequence[float | None]
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
    if len(looks) < FEWEST_STEPS:
        return None
    stepped = [look[0].grads or () for look in looks]
    whole = [[step.own or () for step in look] for look in looks]
    # Where earlier passes of a step only prepared the last one.
    last = [[step.own_last or () for step in look] for look in looks]
    return _fitted(stepped, whole) or _fitted(stepped, last)


def _fitted(stepped: Sequence[_Numbers], given: Sequence[Sequence[_Numbers]]) -> tuple[float, ...] | None:
    # Every parameter counts alike, however large its gradients are.
    sizes = [math.hypot(*(x or 0.0 for x in column)) for column in zip(*stepped, strict=True)]
    used = [n for n, size in enumerate(sizes) if size > 0]
    target = [[(look[n] or 0.0) / sizes[n] for n in used] for look in stepped]
    parts = [
        [[(look[rank][n] or 0.0) / sizes[n] for rank in range(len(look))] for n in used] for look in given
    ]
    scales = [1.0] * len(target)
    weights: list[float] | None = None
    fit: list[list[float]] = []
    for _ in range(_ROUNDS):
        rows = [[scale * x for x in row] for scale, look in zip(scales, parts, strict=True) for row in look]
        weights = _least_squares(rows, [y for look in target for y in look])
        if weights is None:
            return None
        fit = [[_dot(weights, row) for row in look] for look in parts]
        squares = [_dot(look, look) for look in fit]
        if not all(square > 0 for square in squares):
            return None
        scales = [
            _dot(wanted, look) / square for wanted, look, square in zip(target, fit, squares, strict=True)
        ]
    pairs = [
        (y, scale * z)
        for scale, wanted, look in zip(scales, target, fit, strict=True)
        for y, z in zip(wanted, look, strict=True)
    ]
    left = math.hypot(*(y - z for y, z in pairs))
    if weights is None or left > _UNEXPLAINED * math.hypot(*(y for y, _ in pairs)) or not sum(weights) > 0:
        return None
    return tuple(weight / sum(weights) for weight in weights)


def _least_squares(rows: Sequence[Sequence[float]], target: Sequence[float]) -> list[float] | None:
    """The weights of the columns whose sum comes nearest to the target; None where columns are too much alike."""
    columns = list(zip(*rows, strict=True))
    if not rows:
        return None
    gram = [[*(_dot(a, b) for b in columns), _dot(a, target)] for a in columns]
    smallest = _ALIKE**2 * max(gram[n][n] for n in range(len(columns)))
    # Gauss's elimination; a matrix of products needs no exchange of rows.
    for n in range(len(columns)):
        if not gram[n][n] > smallest:
            return None
        for row in gram[n + 1 :]:
            factor = row[n] / gram[n][n]
            row[n:] = [x - factor * y for x, y in zip(row[n:], gram[n][n:], strict=True)]
    weights = [0.0] * len(columns)
    for n in reversed(range(len(columns))):
        weights[n] = (gram[n][-1] - _dot(gram[n][n:-1], weights[n:])) / gram[n][n]
    return weights


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))
