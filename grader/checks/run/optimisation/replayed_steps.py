"""Steps that a script captured in a CUDA graph: whoever replays it calls nothing that could be watched."""

from __future__ import annotations

from grader.model.trace import RankTrace


def replays(rank: RankTrace) -> bool:
    """Whether steps, or all that leads to them, were captured: nobody sees how often they are replayed."""
    return any(event.fields.get("what") in ("backward", "step") for event in rank.events("captured"))
