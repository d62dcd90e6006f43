"""How one learner stands in a course, for an instructor: their tasks, their last attempts, when they last came."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from grader.model.attempt_result import AttemptResult
from grader.store.attempt_results import results_of
from grader.store.attempts import AttemptFilter, StoredAttempt, attempts
from grader.store.courses import AssignedTask
from grader.store.database import Store
from grader.store.gradebook import GradebookCell, gradebook
from grader.store.people import last_sign_in
from grader.web.staff.gradebook_table import total_of

_LAST = 8


@dataclass(frozen=True, slots=True)
class LearnerOverview:
    """One learner of a course.

    Attributes:
        tasks: each that is graded by name, with where they stand, None where nothing was handed in; total: share of all
            their points, 0 to 1.
        last: the attempts that came last, newest first; results: what those with a grade count as.
        signed_in_at: None: never, or before that was noted.
    """

    tasks: tuple[tuple[AssignedTask, GradebookCell | None], ...]
    total: float
    last: tuple[StoredAttempt, ...]
    results: dict[int, AttemptResult]
    signed_in_at: datetime | None


def learner_overview(store: Store, course_id: int, person_id: int) -> LearnerOverview:
    """How somebody stands who learns in the course."""
    book = gradebook(store, course_id)
    line = next((row for row in book.rows if row.person_id == person_id), None)
    cells = {} if line is None else line.cells
    last = attempts(store, AttemptFilter(course_id=course_id, person_id=person_id, named=True), limit=_LAST)
    return LearnerOverview(
        tuple((task, cells.get(task.id)) for task in book.tasks if not task.withdrawn),
        0.0 if line is None else total_of(line, book.tasks),
        last,
        results_of(store, [one.id for one in last]),
        last_sign_in(store, person_id),
    )
