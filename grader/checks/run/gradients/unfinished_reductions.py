"""Steps whose exchange DDP never finished, because some parameter got no gradient: what each rank says of it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from grader.model.trace import RankTrace

COMPLAINT = "Expected to have finished reduction in the prior iteration"
"""DDP's words at the next forward pass."""
_INDICES = re.compile(r"did not receive grad for rank \d+: (?P<indices>[\d ]+)")


def complains(rank: RankTrace) -> bool:
    """Whether DDP stopped a rank for that reason."""
    return any(COMPLAINT in str(e.fields.get("message", "")) for e in rank.events("exception"))


def unfinished(ranks: Sequence[RankTrace], step: int) -> bool:
    """Whether a step is the one that some rank's DDP was still waiting to finish when it stopped."""
    return any(complains(rank) and len(rank.steps) == step + 1 for rank in ranks)


def without_gradient(message: str) -> tuple[int, ...]:
    """Positions of the parameters without a gradient, as DDP's message says of its own rank."""
    found = _INDICES.search(message)
    return tuple(int(n) for n in found["indices"].split()) if found else ()
