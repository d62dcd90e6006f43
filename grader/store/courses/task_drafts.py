"""Tasks that are prepared: instructors see and try them, learners do not know of them until they are published.

A draft counts in no total and for no certificate. Once published, a task is taken back by withdrawing it.
"""

from __future__ import annotations

from sqlalchemy import update

from grader.store.database import Store
from grader.store.events import audit
from grader.store.tables import CourseTaskRow


def publish_task(store: Store, course_id: int, course_task_id: int, *, actor_id: int | None) -> bool:
    """Let learners see a task, on its terms; False: it is no draft of this course."""
    with store.write() as connection:
        row = connection.execute(
            update(CourseTaskRow)
            .where(
                CourseTaskRow.id == course_task_id,
                CourseTaskRow.course_id == course_id,
                CourseTaskRow.draft_since.is_not(None),
            )
            .values(draft_since=None)
            .returning(CourseTaskRow.task, CourseTaskRow.profile)
        ).one_or_none()
        if row is None:
            return False
        audit(
            connection,
            f"course:{course_id}",
            "task_published",
            actor_id=actor_id,
            task=row.task,
            profile=row.profile,
        )
        return True
