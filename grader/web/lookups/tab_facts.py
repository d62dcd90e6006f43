"""What the tabs of a course say besides their names: every page of its staff asks, for both in one go."""

from __future__ import annotations

from dataclasses import dataclass

from grader.store.courses.grading_rules import forum_of
from grader.store.courses.learners import Learners
from grader.store.database import Store
from grader.store.grading.review_counts import num_to_review


@dataclass(frozen=True, slots=True)
class TabFacts:
    """How much waits for somebody to look at, and where the course talks; `forum` None: nowhere."""

    num_to_review: int
    forum: str | None


def tab_facts(store: Store, course_id: int, learners: Learners | None) -> TabFacts:
    """Of a course as staff sees it who is shown these learners; None: everybody."""
    return TabFacts(num_to_review(store, course_id, learners), forum_of(store, course_id))
