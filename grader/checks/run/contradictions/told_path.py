"""Whether weights lie on the path that training took, as its looks at parameters tell.

Whatever is made of a run's own weights lies within what they went through: the last ones, the best ones, averages of
any kind. Weights that were trained elsewhere do not. Of a few parameters one number each is known at many steps (see
PARAMS in `probe.events`), and the same number of the weights in question.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from grader.model.trace import Trace

_FEWEST_MOMENTS = 6
_BEYOND = 1.0
"""How far outside weights may lie, in widths of what a parameter went through: looks are up to 32 steps apart."""
_ROUNDING = 2e-2
"""Of a number's size: weights may have been rounded to 16 bits."""


@dataclass(frozen=True, slots=True)
class OffPath:
    """A parameter that never was near what it should have been: its name, its number, and between which two it lay."""

    name: str
    value: float
    lowest: float
    highest: float


def off_path(trace: Trace, fingerprints: Mapping[str, float]) -> OffPath | None:
    """The parameter that lies farthest outside, None where all lie on the path or that cannot be told.

    Args:
        fingerprints: of the weights in question, by name.
    """
    worst, farthest = None, _BEYOND
    for name, values in _moments(trace).items():
        held = _of(name, fingerprints)
        if held is None or len(values) < _FEWEST_MOMENTS:
            continue
        lowest, highest = min(values), max(values)
        outside = max(lowest - held, held - highest) - _ROUNDING * abs(held)
        if outside > farthest * (highest - lowest) > 0:
            worst, farthest = OffPath(name, held, lowest, highest), outside / (highest - lowest)
    return worst


def _moments(trace: Trace) -> dict[str, list[float]]:
    """What each parameter was at the steps that were looked at, on all ranks."""
    found: dict[str, list[float]] = defaultdict(list)
    for rank in trace.ranks:
        for look in rank.params:
            for name, value in zip(look.names, look.sums, strict=False):
                if value is not None:
                    found[name].append(value)
    return found


def _of(name: str, fingerprints: Mapping[str, float]) -> float | None:
    """That of a parameter, whose name may have more or fewer parts in front than in the file."""
    if name in fingerprints:
        return fingerprints[name]
    same = [key for key in fingerprints if key.endswith(f".{name}") or name.endswith(f".{key}")]
    return fingerprints[same[0]] if len(same) == 1 else None
