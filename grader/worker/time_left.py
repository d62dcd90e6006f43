"""What can still be judged before a worker has to have finished: tasks whose run, at its longest, and scoring fit.

Says nothing of attempts: which of them are of such a task is the queue's to know.
"""

from __future__ import annotations

from functools import cache

from grader.catalog.tasks import find_tasks, load_task
from grader.errors import TaskError

SCORING_S = 90.0
"""Seconds for what comes before and after a run: preparing it, scoring, the reports."""


def fitting(left_s: float) -> tuple[tuple[str, str], ...]:
    """Task and profile of all that takes no more than so many seconds, at the longest that its limits allow.

    Raises:
        UsageError: there is no folder of tasks.
    """
    return tuple(place for place, wall_s in _limits() if wall_s + SCORING_S < left_s)


@cache
def _limits() -> tuple[tuple[tuple[str, str], float], ...]:
    # Read once: a worker that has to finish does not live long enough to see its folder of tasks change.
    found = []
    for name in find_tasks():
        try:
            task = load_task(name)
        except TaskError:
            continue
        found += [((name, profile.name), profile.limits.wall_s) for profile in task.profiles]
    return tuple(found)
