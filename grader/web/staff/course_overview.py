"""What an instructor wants to know first of a course: what waits for them, who needs help, what is due next."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from grader.store.class_statistics import JudgeFailures, judge_failures, stuck_learners
from grader.store.courses import AssignedTask, tasks_of
from grader.store.database import Store
from grader.store.held_attempts import num_held
from grader.store.queue_overview import num_waiting
from grader.store.webhooks import webhooks_of

_MOST_DUE = 3


@dataclass(frozen=True, slots=True)
class CourseOverview:
    """A course at a glance.

    Attributes:
        num_held: attempts that wait for a decision; failures: those that the grader failed at.
        num_stuck: learners who try and are not accepted, in any task; num_waiting: attempts of the course in the queue.
        due: what is due next, the soonest first.
        num_webhooks_off: those that failed for so long that they are told nothing any more.
    """

    num_held: int
    failures: JudgeFailures
    num_stuck: int
    num_waiting: int
    due: tuple[AssignedTask, ...]
    num_webhooks_off: int


def course_overview(store: Store, course_id: int) -> CourseOverview:
    """The course just now."""
    now = datetime.now(UTC)
    ahead = [
        (task.terms.due_at, task.id, task)
        for task in tasks_of(store, course_id)
        if task.offered and task.terms.due_at is not None and task.terms.due_at > now
    ]
    return CourseOverview(
        num_held(store, course_id),
        judge_failures(store, course_id),
        len({one.person_id for one in stuck_learners(store, course_id)}),
        num_waiting(store, course_id),
        tuple(task for _, _, task in sorted(ahead)[:_MOST_DUE]),
        sum(one.disabled_at is not None for one in webhooks_of(store, course_id)),
    )
