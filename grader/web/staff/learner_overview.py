"""How one learner stands in a course, for its staff: tasks, attempts, extensions, and what was said to them."""

from __future__ import annotations

from dataclasses import dataclass

from grader.model.attempt_result import AttemptResult
from grader.store.attempts.attempt_results import results_of
from grader.store.attempts.attempts import AttemptFilter, StoredAttempt, attempts
from grader.store.courses.courses import AssignedTask
from grader.store.courses.extensions import StoredExtension, extensions_of
from grader.store.database import Store
from grader.store.grading.gradebook import GradebookCell, gradebook
from grader.store.grading.learner_comments import LearnerComment, comments_for
from grader.web.staff.gradebook_table import total_of

_MOST_ATTEMPTS = 300


@dataclass(frozen=True, slots=True)
class LearnerOverview:
    """One learner of a course.

    Attributes:
        tasks: each that is graded by name, with where they stand, None where nothing was handed in; total: share of all
            their points, 0 to 1.
        attempts: newest first; results: what those with a grade count as; more: whether there are older ones.
        extensions: more time and attempts that they were given; comments: the newest first.
    """

    tasks: tuple[tuple[AssignedTask, GradebookCell | None], ...]
    total: float
    attempts: tuple[StoredAttempt, ...]
    results: dict[int, AttemptResult]
    more: bool
    extensions: tuple[StoredExtension, ...]
    comments: tuple[LearnerComment, ...]


def learner_overview(store: Store, course_id: int, person_id: int) -> LearnerOverview:
    """How somebody stands who learns in the course."""
    book = gradebook(store, course_id, person_id=person_id)
    line = book.rows[0] if book.rows else None
    cells = {} if line is None else line.cells
    wanted = AttemptFilter(course_id=course_id, person_id=person_id, named=True)
    found = attempts(store, wanted, limit=_MOST_ATTEMPTS + 1)
    return LearnerOverview(
        tuple((task, cells.get(task.id)) for task in book.tasks if not task.withdrawn),
        0.0 if line is None else total_of(line, book.tasks),
        found[:_MOST_ATTEMPTS],
        results_of(store, [one.id for one in found]),
        len(found) > _MOST_ATTEMPTS,
        tuple(one for one in extensions_of(store, course_id) if one.person_id == person_id),
        comments_for(store, course_id, person_id),
    )
