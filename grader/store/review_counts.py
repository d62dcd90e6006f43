"""How much of a course waits for its staff to look at: held attempts, requests for a regrade, answers to comments."""

from __future__ import annotations

from grader.store.comment_replies import num_unanswered
from grader.store.database import Store
from grader.store.held_attempts import num_held
from grader.store.regrade_requests import num_open_requests


def num_to_review(store: Store, course_id: int) -> int:
    """All of it, for the one number that stands beside the way there."""
    return num_held(store, course_id) + num_open_requests(store, course_id) + num_unanswered(store, course_id)
