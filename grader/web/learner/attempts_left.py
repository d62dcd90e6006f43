"""How many attempts a learner still has at a task, in words; who has as many as they like is told nothing."""

from __future__ import annotations

from grader.store.database import Store
from grader.store.grading.progress import OwnTask, progress
from grader.translation import gettext


def attempts_left_at(store: Store, course_id: int, person_id: int, course_task_id: int) -> str:
    """The same, looked up; "" also for somebody who has no such task."""
    found = (one for one in progress(store, course_id, person_id) if one.task.id == course_task_id)
    return next(map(attempts_left, found), "")


def attempts_left(own: OwnTask) -> str:
    """Such as `2 of 3 left today`; "" where nothing is counted. A day is 24 hours, and the narrower limit is told."""
    told = []
    if own.caps.per_day is not None:
        today = gettext("{left} of {total} left today")
        told.append((max(0, own.caps.per_day - own.used_today), own.caps.per_day, today))
    if own.caps.total is not None:
        in_all = gettext("{left} of {total} left in all")
        told.append((max(0, own.caps.total - own.used), own.caps.total, in_all))
    if not told:
        return ""
    left, total, text = min(told, key=lambda one: one[0])
    return text.format(left=left, total=total)
