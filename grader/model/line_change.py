"""What one line of a script did to a trained model: told in a second look, beside the events of any run's trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from grader.model.call_site import Site

Sums: TypeAlias = tuple[float | None, ...]
"""A fingerprint: one float64 sum per chosen tensor."""


@dataclass(frozen=True, slots=True)
class LineChange:
    """A line of the script changed what a trained model holds; only told in a second look.

    Attributes:
        model: number of the model in its rank. what: `weights` or `gradients`.
        step: optimizer steps taken so far.
        site: the line; None for what was found to begin with. callers: lines that led there, innermost first.
        names, sums: fingerprint of each tensor afterwards.
    """

    model: int
    what: str
    step: int
    site: Site | None
    callers: tuple[Site, ...]
    names: tuple[str, ...]
    sums: Sums
    t: float
