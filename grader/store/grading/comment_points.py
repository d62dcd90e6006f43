"""How far a comment may change points: within the rubric item that it is about, or within the total.

What all comments of an attempt come to is added up where results are read (`attempt_results`), once.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from grader.errors import UsageError
from grader.store.tables import CommentRow, GradeRow


@dataclass(frozen=True, slots=True)
class CommentPoints:
    """What a comment is to change: points, below 0 to take some, of a rubric item or (None) of the total."""

    points: float
    item: str | None = None


@dataclass(frozen=True, slots=True)
class CommentChange:
    """What a comment is to change, None: nothing; `entry_id`: where in the library it is from, None: from nowhere."""

    points: CommentPoints | None = None
    entry_id: int | None = None


NO_CHANGE = CommentChange()


def possible_change(
    connection: Connection, attempt_id: int, family: Collection[int], wanted: CommentPoints
) -> float:
    """As much of the wanted change as the item or the total leaves room for, beside what other comments change.

    Args:
        connection: of the caller's transaction, which has locked the attempt.
        attempt_id: whose grade says what was earned; family: it, what it judges again, and other regrades of that.
        wanted: the change.

    Raises:
        UsageError: the attempt has no grade, or its rubric no such item.
    """
    row = connection.execute(
        select(GradeRow.points, GradeRow.max_points, GradeRow.document).where(
            GradeRow.attempt_id == attempt_id
        )
    ).one_or_none()
    if row is None:
        raise UsageError("this attempt has no grade yet whose points a comment could change")
    others = select(func.coalesce(func.sum(CommentRow.points), 0.0)).where(
        CommentRow.attempt_id.in_(family), CommentRow.withdrawn_at.is_(None)
    )
    earned, most = row.points, row.max_points
    if wanted.item is not None:
        items = {one["id"]: one for one in json.loads(row.document).get("rubric", ())}
        if wanted.item not in items:
            raise UsageError("the rubric of this attempt has no such item")
        earned, most = items[wanted.item]["earned"], items[wanted.item]["points"]
        others = others.where(CommentRow.item == wanted.item)
    now = earned + connection.execute(others).scalar_one()
    # What an earlier judgement left room for may be more than there is now: that is no reason to go the other way.
    change: float = min(max(wanted.points, -max(now, 0.0)), max(most - now, 0.0))
    return round(change, 2)
