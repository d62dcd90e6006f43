"""A course as its file describes it: which tasks, in which order, on what terms. Nothing of people or dates.

Dates come in when a course is held: its file knows how long after the first day a task opens and is due.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path


@dataclass(frozen=True, slots=True)
class CourseItem:
    """A task in a course.

    Attributes:
        task: name of its folder; profile: where its attempts run.
        weight: share of the course's total, in percent.
        required: the certificate needs it accepted.
        after: names of tasks of this course that should be accepted first; advice, never a lock.
        opens: how long after the course begins; due: likewise, None for never.
        late: what happens afterwards: `closed`, `accepted` or `reduced` by `late_loss` (a share) for each day begun.
        late_days: how many days that goes on, None for ever.
        hidden_until_due: learners see findings, and points only once it is due.
        max_per_day, max_total: attempts, None for any number.
        grace_minutes: for so long after it is due nothing is late yet.
    """

    task: str
    profile: str
    weight: float
    required: bool = True
    after: tuple[str, ...] = ()
    opens: timedelta = timedelta(0)
    due: timedelta | None = None
    late: str = "closed"
    late_loss: float = 0.0
    late_days: int | None = None
    hidden_until_due: bool = False
    max_per_day: int | None = None
    max_total: int | None = None
    grace_minutes: int | None = None


@dataclass(frozen=True, slots=True)
class Course:
    """A course file.

    Attributes:
        name: short, for addresses and commands; title, about: for people.
        path: the file.
        items: in the course's order.
        late_days: days that each learner may be late at no cost, in all, 0 for none; late_days_per_task: at most for
            one task, None for any number.
    """

    name: str
    title: str
    about: str
    path: Path
    items: tuple[CourseItem, ...]
    late_days: int = 0
    late_days_per_task: int | None = None

    def item(self, task: str) -> CourseItem | None:
        """The place of that task in the course, or None."""
        return next((i for i in self.items if i.task == task), None)
