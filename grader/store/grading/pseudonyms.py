"""Names that stand for learners while a task is graded anonymously: the same all over a course, and not to be guessed.

Whoever reads attempts from the store gets them instead of names and logins, whoever they are. When a task is graded so
is `grading_rules`.
"""

from __future__ import annotations

import base64
import hmac
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, case, func, or_, select
from sqlalchemy.orm import aliased

from grader.store.database import Store
from grader.store.tables import (
    AttemptRow,
    CommentRow,
    CourseTaskRow,
    CreditRow,
    GradingRulesRow,
    TaskGradingRow,
)

_LETTERS = 8
_LOOKALIKES = str.maketrans("IO", "89")


def pseudonym(key: str, person_id: int) -> str:
    """The name of a learner in the course whose key that is, such as `Learner K7QM-2XWP`."""
    digest = hmac.digest(key.encode(), str(person_id).encode(), "sha256")
    # 40 bits: of a thousand learners no two are called the same, and nobody tries all people.
    letters = base64.b32encode(digest).decode()[:_LETTERS].translate(_LOOKALIKES)
    return f"Learner {letters[:4]}-{letters[4:]}"


def key_column(course_task_id: Any) -> ColumnElement[Any]:
    """The key with which the learners of a task are named, None where they are called by their names.

    `course_task_id`: the column of the statement that it stands in.
    """
    task = aliased(CourseTaskRow)
    return (
        select(GradingRulesRow.pseudonym_key)
        .select_from(task)
        .join(GradingRulesRow, GradingRulesRow.course_id == task.course_id)
        .outerjoin(TaskGradingRow, TaskGradingRow.course_task_id == task.id)
        .where(task.id == course_task_id, _ANONYMOUS)
        .correlate_except(task, GradingRulesRow, TaskGradingRow)
        .scalar_subquery()
    )


def by_pseudonym() -> ColumnElement[Any]:
    """The key under which the author of a comment is named: a learner whose attempt it is on; None: by their name.

    A column beside `CommentRow` and its `AttemptRow`.
    """
    shared = select(CreditRow.submission_id).where(CreditRow.person_id == CommentRow.author_id)
    own = or_(AttemptRow.person_id == CommentRow.author_id, AttemptRow.submission_id.in_(shared))
    return case((own, key_column(AttemptRow.course_task_id)), else_=None)


def shown_name(key: str | None, person_id: int | None, name: str | None) -> str | None:
    """What somebody is called where that key holds."""
    return name if key is None or person_id is None else pseudonym(key, person_id)


def anonymous_tasks(store: Store, course_id: int) -> dict[int, str]:
    """The tasks of a course that are graded anonymously, and the key for each."""
    with store.read() as connection:
        return read_anonymous_tasks(connection, course_id)


def read_anonymous_tasks(connection: Connection, course_id: int) -> dict[int, str]:
    """The same, within a transaction of the caller's."""
    rows = connection.execute(_ANONYMOUS_TASKS, {"course": course_id})
    return {row.id: row.pseudonym_key for row in rows}


_ANONYMOUS = func.coalesce(TaskGradingRow.anonymous, GradingRulesRow.anonymous).is_(True)
# Made once: every gradebook asks for it.
_ANONYMOUS_TASKS = (
    select(CourseTaskRow.id, GradingRulesRow.pseudonym_key)
    .join(GradingRulesRow, GradingRulesRow.course_id == CourseTaskRow.course_id)
    .outerjoin(TaskGradingRow, TaskGradingRow.course_task_id == CourseTaskRow.id)
    .where(CourseTaskRow.course_id == bindparam("course"), _ANONYMOUS)
)
