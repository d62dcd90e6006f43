"""How much of a course waits for its staff to look at: held attempts, requests for a regrade, answers to comments."""

from __future__ import annotations

from grader.store.courses.learners import ALL_LEARNERS, Learners
from grader.store.database import Store
from grader.store.grading.comment_replies import num_unanswered
from grader.store.grading.held_attempts import num_held
from grader.store.grading.regrade_requests import num_open_requests


def num_to_review(store: Store, course_id: int, learners: Learners | None = None) -> int:
    """All of it, for the one number that stands beside the way there; None: of everybody who learns there."""
    shown = learners or ALL_LEARNERS
    return (
        num_held(store, course_id, shown)
        + num_open_requests(store, course_id, shown)
        + num_unanswered(store, course_id, shown)
    )
