"""How many late days a learner has left in a course."""

from __future__ import annotations

from collections.abc import Iterable

from grader.store.courses.courses import CourseFacts
from grader.store.grading.progress import OwnTask


def late_days_left(course: CourseFacts, owned: Iterable[OwnTask]) -> int | None:
    """So many of the course's; None: it gives none."""
    if course.late_bank is None:
        return None
    return max(0, course.late_bank.total - sum(one.used_free_days for one in owned))
