"""The tasks by name, and their queues: one for each need of devices and each lane.

So no message wakes a worker that cannot serve it. Who is next is decided when an attempt is claimed, never by the order
of messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

JUDGE_SUBMISSION = "grader.judge_submission"
REGRADE_ATTEMPT = "grader.regrade_attempt"
TASK_OF_LANE = {"interactive": JUDGE_SUBMISSION, "regrade": REGRADE_ATTEMPT}
"""The lanes, the first one first, and the task for what waits there."""
_LANE_OF_TASK = {task: lane for lane, task in TASK_OF_LANE.items()}
_PREFIX = "grader"


def queue_name(need: str, lane: str) -> str:
    """The queue for messages about attempts with this need (`cpu`, `gpu2`, …) in this lane."""
    return f"{_PREFIX}.{need}.{lane}"


def queue_names(needs: Sequence[str]) -> tuple[str, ...]:
    """The queues that a worker listens to: those of the first lane first."""
    return tuple(queue_name(need, lane) for lane in TASK_OF_LANE for need in needs)


def route_by_need(
    name: str, _args: Sequence[Any], kwargs: Mapping[str, Any], _options: Mapping[str, Any], **_more: Any
) -> dict[str, str] | None:
    """Celery's router: our tasks by what they need, anything else is not ours to route."""
    lane = _LANE_OF_TASK.get(name)
    return {"queue": queue_name(kwargs["need"], lane)} if lane and "need" in kwargs else None
