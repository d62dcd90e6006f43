"""Whether two fingerprints, sums over the tensors of a model, are those of equal tensors.

With DDP equal to the bit; a hand-written average may round in another order, so a relative difference of 1e-5 of the
fingerprint's size still counts as equal. Faults are several orders of magnitude larger.
"""

from __future__ import annotations

import math
from collections import Counter

from grader.model.line_change import Sums

_TOLERANCE = 1e-5


def equal(a: Sums, b: Sums) -> bool:
    """True when two fingerprints agree within the tolerance."""
    return len(a) == len(b) and not different(a, b)


def contains(whole: Sums, part: Sums) -> bool:
    """True when (nearly) all sums of one fingerprint are found in another that may hold more tensors, in any order."""
    left = Counter(_rounded(x) for x in whole if x is not None)
    wanted = Counter(_rounded(x) for x in part if x is not None)
    return sum((wanted & left).values()) >= 0.9 * sum(wanted.values())


def _rounded(value: float) -> str:
    return f"{value:.4e}"


def different(a: Sums, b: Sums) -> list[int]:
    """Which of as many sums are not equal."""
    finite = [abs(x) for x in (*a, *b) if x is not None and math.isfinite(x)]
    scale = max(finite, default=0.0)
    return [i for i, (x, y) in enumerate(zip(a, b, strict=True)) if not _close(x, y, scale)]


def _close(x: float | None, y: float | None, scale: float) -> bool:
    if x is None or y is None:
        return x is y
    if not (math.isfinite(x) and math.isfinite(y)):
        return x == y or (math.isnan(x) and math.isnan(y))
    # A sum near zero is a cancellation: its own size says nothing, the largest one's does.
    return abs(x - y) <= max(_TOLERANCE * max(abs(x), abs(y)), 0.1 * _TOLERANCE * scale)
