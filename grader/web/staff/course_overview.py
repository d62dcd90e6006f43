"""What staff wants to know first of a course: what waits for them, who needs help, what is due next."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from grader.store.courses.courses import AssignedTask, tasks_of
from grader.store.courses.learners import ALL_LEARNERS, Learners
from grader.store.database import Store
from grader.store.delivery.webhooks import webhooks_of
from grader.store.grading.class_statistics import JudgeFailures, judge_failures, stuck_learners
from grader.store.grading.comment_replies import num_unanswered
from grader.store.grading.held_attempts import num_held
from grader.store.grading.regrade_requests import num_open_requests
from grader.store.queue.queue_overview import num_waiting

_MOST_DUE = 3


@dataclass(frozen=True, slots=True)
class CourseOverview:
    """A course at a glance.

    Attributes:
        num_held: attempts that wait for a decision; num_requests: regrades that learners asked for and nobody decided;
        num_replies: answers to comments that nobody of the staff answered.
        failures: those that the grader failed at.
        num_stuck: learners who try and are not accepted, in any task; num_waiting: attempts of the course in the queue.
        due: what is due next, the soonest first.
        num_webhooks_off: those that failed for so long that they are told nothing any more.
    """

    num_held: int
    num_requests: int
    num_replies: int
    failures: JudgeFailures
    num_stuck: int
    num_waiting: int
    due: tuple[AssignedTask, ...]
    num_webhooks_off: int


def course_overview(store: Store, course_id: int, learners: Learners | None) -> CourseOverview:
    """The course just now, as far as it is about these learners; None: everybody."""
    now = datetime.now(UTC)
    ahead = [
        (task.terms.due_at, task.id, task)
        for task in tasks_of(store, course_id)
        if task.offered and task.terms.due_at is not None and task.terms.due_at > now
    ]
    return CourseOverview(
        num_held(store, course_id, learners or ALL_LEARNERS),
        num_open_requests(store, course_id, learners or ALL_LEARNERS),
        num_unanswered(store, course_id, learners or ALL_LEARNERS),
        judge_failures(store, course_id, learners),
        len({one.person_id for one in stuck_learners(store, course_id, learners or ALL_LEARNERS)}),
        num_waiting(store, course_id, learners),
        tuple(task for _, _, task in sorted(ahead)[:_MOST_DUE]),
        sum(one.disabled_at is not None for one in webhooks_of(store, course_id)),
    )
