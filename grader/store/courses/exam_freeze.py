"""While an exam is on, its terms and its version stay as they are, unless somebody says that they mean it."""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from grader.errors import UsageError
from grader.store.attempts.limits import MINUTE
from grader.store.clock import database_now
from grader.store.tables import CourseRow, CourseTaskRow, ExamSittingRow, ExtensionRow


class ExamRunsError(UsageError):
    """The exam is on; nothing was changed. `num_begun`: how many have begun it."""

    def __init__(self, title: str, num_begun: int) -> None:
        self.num_begun = num_begun
        super().__init__(
            f"{title} is an exam that is on just now, and {num_begun} {'has' if num_begun == 1 else 'have'} begun it: "
            "its terms and its version stay as they are until it is over. Its page under Settings asks whether you "
            "mean it."
        )


def refuse_during_exam(connection: Connection, course_task_id: int) -> None:
    """Let a task of a course be changed, unless it is an exam that learners can sit just now.

    Raises:
        ExamRunsError: it is one.
    """
    row = connection.execute(
        select(
            CourseTaskRow.title,
            CourseTaskRow.opens_at,
            CourseTaskRow.due_at,
            func.max(ExtensionRow.due_at).label("last_due"),
            func.max(func.coalesce(ExtensionRow.extra_minutes, 0)).label("extra_minutes"),
            database_now().label("now"),
        )
        .join(CourseRow, CourseRow.id == CourseTaskRow.course_id)
        .outerjoin(ExtensionRow, ExtensionRow.course_task_id == CourseTaskRow.id)
        .where(
            CourseTaskRow.id == course_task_id,
            CourseTaskRow.exam_minutes.is_not(None),
            CourseTaskRow.draft_since.is_(None),
            CourseTaskRow.withdrawn_at.is_(None),
            CourseRow.draft_since.is_(None),
        )
        .group_by(CourseTaskRow.id, CourseTaskRow.title, CourseTaskRow.opens_at, CourseTaskRow.due_at)
    ).one_or_none()
    if row is None:
        return
    last = max(row.due_at, row.last_due or row.due_at) + (row.extra_minutes or 0) * MINUTE
    if row.now > last or (row.opens_at is not None and row.now < row.opens_at):
        return
    begun = select(func.count()).where(ExamSittingRow.course_task_id == course_task_id)
    raise ExamRunsError(row.title, connection.execute(begun).scalar_one())
