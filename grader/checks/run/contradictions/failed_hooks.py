"""Hooks of the probe that failed in a rank: what they would have told of its training steps is not known in full."""

from __future__ import annotations

from grader.model.trace import RankTrace

_OF_STEPS = ("forward", "update", "step", "after step", "backward", "batch", "pass")
"""Names of hooks (`probe.patches.guarded`) without which steps, or what they are fed, go by unseen."""


def lost_steps(rank: RankTrace) -> bool:
    """Whether some of its steps, or of what they were fed, may have gone by unseen: what was counted is a sample."""
    told = (str(event.fields.get("reason", "")) for event in rank.events("unsupported"))
    return any(reason.startswith(tuple(f"hook {name} failed:" for name in _OF_STEPS)) for reason in told)
