"""Changing on what terms a course sets a task, also while it is an exam that is on."""

from __future__ import annotations

from dataclasses import asdict

from sqlalchemy import update

from grader.store.courses.courses import AssignedTask, TaskTerms, lock_course
from grader.store.courses.exam_freeze import refuse_during_exam
from grader.store.database import Store
from grader.store.delivery.notices import notify_dates
from grader.store.events import audit
from grader.store.grading.standings import recompute_standings
from grader.store.tables import CourseTaskRow


def change_terms(
    store: Store, task: AssignedTask, terms: TaskTerms, *, during_exam: bool = False, actor_id: int | None
) -> None:
    """Set a task of a course on other terms; who stands where follows. `during_exam`: even where it is one that is on.

    Raises:
        ExamRunsError: it is one.
    """
    with store.write() as connection:
        lock_course(connection, task.course_id)
        if not during_exam:
            refuse_during_exam(connection, task.id)
        connection.execute(update(CourseTaskRow).where(CourseTaskRow.id == task.id).values(**asdict(terms)))
        recompute_standings(connection, task.id)
        if (task.terms.opens_at, task.terms.due_at) != (terms.opens_at, terms.due_at):
            notify_dates(connection, task.id)
        audit(
            connection,
            f"course:{task.course_id}",
            "task_set",
            actor_id=actor_id,
            task=task.task,
            version=terms.version,
        )
