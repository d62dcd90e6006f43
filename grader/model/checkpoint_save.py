"""A checkpoint that a rank wrote: where, through what, and which weights were in it."""

from __future__ import annotations

from dataclasses import dataclass

from grader.model.call_site import Site
from grader.model.line_change import Sums


@dataclass(frozen=True, slots=True)
class Save:
    """A checkpoint written through torch, safetensors or distributed checkpoint."""

    path: str
    out: bool
    site: Site | None
    api: str
    prefix: str
    num_tensors: int
    sums: Sums
    t: float
    live: bool = False
    """It holds the trained model as it was at that moment: no copy, no average, nobody else's weights."""
    untracked: bool = False
    """Its BatchNorm layers have counted no batch: their statistics are those of a new network."""
