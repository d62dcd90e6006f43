"""All comments on what counts for one person in a course, where it is graded by name. Changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select

from grader.store.database import Store
from grader.store.grading.credits import counts_for
from grader.store.grading.pseudonyms import key_column
from grader.store.tables import AttemptRow, CommentRow, CourseTaskRow, PersonRow


@dataclass(frozen=True, slots=True)
class LearnerComment:
    """One comment, and on which attempt; `author` None: they were erased."""

    attempt_id: int
    task: str
    author: str | None
    text: str
    created_at: datetime


def comments_for(
    store: Store, course_id: int, person_id: int, *, limit: int = 100
) -> tuple[LearnerComment, ...]:
    """The last comments on somebody's attempts, the newest first."""
    with store.read() as connection:
        rows = connection.execute(
            select(AttemptRow.id, CourseTaskRow.title, PersonRow.name, CommentRow.text, CommentRow.created_at)
            .select_from(CommentRow)
            .join(AttemptRow, AttemptRow.id == CommentRow.attempt_id)
            .join(CourseTaskRow, CourseTaskRow.id == AttemptRow.course_task_id)
            .outerjoin(PersonRow, PersonRow.id == CommentRow.author_id)
            .where(
                CourseTaskRow.course_id == course_id,
                counts_for([person_id]),
                CommentRow.withdrawn_at.is_(None),
                key_column(AttemptRow.course_task_id).is_(None),
            )
            .order_by(CommentRow.id.desc())
            .limit(limit)
        )
        return tuple(LearnerComment(*row) for row in rows)
