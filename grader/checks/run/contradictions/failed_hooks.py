"""Hooks of the probe that failed or stopped in a rank: what they would have told of its steps is not known in full."""

from __future__ import annotations

from grader.model.trace import RankTrace
from grader.probe.trace.events import SEVERAL_THREADS

_OF_STEPS = ("forward", "update", "step", "after step", "backward", "batch", "pass")
"""Names of hooks (`probe.patches.guarded`) without which steps, or what they are fed, go by unseen."""


def lost_steps(rank: RankTrace) -> bool:
    """Whether some of its steps, or of what they were fed, may have gone by unseen: what was counted is a sample."""
    told = (str(event.fields.get("reason", "")) for event in rank.events("unsupported"))
    failed = (SEVERAL_THREADS, *(f"hook {name} failed:" for name in _OF_STEPS))
    return any(reason.startswith(failed) for reason in told)
