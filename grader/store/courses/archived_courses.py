"""Courses that are archived can be read, and nothing else: the one place where changes of them are refused.

Whatever changes a course notes it for the audit and comes by here (`events.audit`); what changes an attempt's grade or
says something of it asks by itself. What certificates and accounts need stays possible.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, select

from grader.errors import UsageError
from grader.store.tables import CourseRow, CourseTaskRow

_STILL_POSSIBLE = frozenset(
    {
        "course_archived",
        "course_restored",
        "course_deleted",
        "certified",
        "certificate_revoked",
        "certificate_reinstated",
        "left",
    }
)
_COURSE = "course:"


class CourseArchivedError(UsageError):
    """The course is archived; nothing was changed."""

    def __init__(self) -> None:
        super().__init__(
            "The course is archived: it can be read, and nothing of it is changed. Take it out of the archive first, "
            "under Settings."
        )


def refuse_archived(connection: Connection, subject: str, kinds: Collection[str]) -> None:
    """Let nothing be noted of a course that is archived but what stays possible there.

    Args:
        connection: the transaction of the change.
        subject: of the audit, such as `course:3`; any other is let pass.
        kinds: what is to be noted.

    Raises:
        CourseArchivedError: it is archived.
    """
    if not subject.startswith(_COURSE) or _STILL_POSSIBLE.issuperset(kinds):
        return
    number = int(subject.removeprefix(_COURSE))
    archived = select(CourseRow.id).where(CourseRow.id == number, CourseRow.archived_at.is_not(None))
    if connection.execute(archived).first() is not None:
        raise CourseArchivedError


def refuse_archived_tasks(connection: Connection, course_task_ids: Collection[int]) -> None:
    """The same of what happens to attempts at these tasks.

    Raises:
        CourseArchivedError: one of them is of a course that is archived.
    """
    archived = (
        select(CourseRow.id)
        .join(CourseTaskRow, CourseTaskRow.course_id == CourseRow.id)
        .where(CourseTaskRow.id.in_(course_task_ids), CourseRow.archived_at.is_not(None))
    )
    if connection.execute(archived).first() is not None:
        raise CourseArchivedError
