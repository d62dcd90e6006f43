"""What can still be judged before a worker has to have finished: tasks whose run, at its longest, and scoring fit.

Says nothing of attempts: which of them are of such a task is the queue's to know.
"""

from __future__ import annotations

from grader.catalog.tasks.task_folders import find_tasks, load_task
from grader.errors import TaskError, UsageError
from grader.worker.coordinator import Coordinator

SCORING_S = 90.0
"""Seconds for what comes before and after a run: preparing it, scoring, the reports."""
TimeLimits = tuple[tuple[tuple[str, str], float], ...]
"""((task, profile), seconds that a run may take) of every task that is known."""


def read_time_limits(coordinator: Coordinator) -> TimeLimits:
    """What the courses set, and what lies in this host's folder of tasks besides.

    Read once: a worker that has to finish does not live long enough to see tasks change.
    """
    found = dict(_of_folder())
    found |= {(task, profile): wall_s for task, profile, wall_s in coordinator.time_limits()}
    return tuple(sorted(found.items()))


def fitting(left_s: float, limits: TimeLimits) -> tuple[tuple[str, str], ...]:
    """Task and profile of all that takes no more than so many seconds, at the longest that its limits allow."""
    return tuple(place for place, wall_s in limits if wall_s + SCORING_S < left_s)


def _of_folder() -> TimeLimits:
    found = []
    try:
        names = find_tasks()
    except UsageError:
        return ()
    for name in names:
        try:
            task = load_task(name)
        except TaskError:
            continue
        found += [((name, profile.name), profile.limits.wall_s) for profile in task.profiles]
    return tuple(found)
