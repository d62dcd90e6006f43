"""In which order a course sets its tasks."""

from __future__ import annotations

from sqlalchemy import select, update

from grader.errors import UsageError
from grader.store.database import Store
from grader.store.events import audit
from grader.store.tables import CourseTaskRow


def reorder(store: Store, course_id: int, task_ids: tuple[int, ...], *, actor_id: int | None) -> None:
    """Put a course's tasks into this order.

    Raises:
        UsageError: these are not exactly the course's tasks.
    """
    with store.write() as connection:
        there = set(
            connection.execute(select(CourseTaskRow.id).where(CourseTaskRow.course_id == course_id)).scalars()
        )
        if there != set(task_ids) or len(there) != len(task_ids):
            raise UsageError("an order names each of the course's tasks once")
        for position, task_id in enumerate(task_ids, start=1):
            connection.execute(
                update(CourseTaskRow).where(CourseTaskRow.id == task_id).values(position=position)
            )
        audit(connection, f"course:{course_id}", "tasks_reordered", actor_id=actor_id)
