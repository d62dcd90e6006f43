"""What instructors asked the learners of attempts before deciding, and what those answered: the last word of each.

Questions and answers are comments (`reviews`); an event beside each says which it is.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select

from grader.store.tables import CommentRow, EventRow, PersonRow

ASKED = "asked"
"""Kind of the event that says that an instructor asked the learner something before deciding."""
ANSWERED = "answered"
"""Kind of the event that says that the learner answered."""


@dataclass(frozen=True, slots=True)
class LastWord:
    """A question that waits for an answer, or (`answered`) the answer to the last one; `author` None: was erased.

    `comment_id` is the comment that it is.
    """

    comment_id: int
    answered: bool
    author: str | None
    text: str
    at: datetime


def unanswered(connection: Connection, attempt_ids: Collection[int]) -> dict[int, LastWord]:
    """The questions that wait for an answer, by attempt. Within a transaction of the caller's."""
    words = last_words(connection, attempt_ids)
    return {attempt: word for attempt, word in words.items() if not word.answered}


def last_words(connection: Connection, attempt_ids: Collection[int]) -> dict[int, LastWord]:
    """The last question or answer of each of these attempts; those without any are not in it.

    Within a transaction of the caller's.
    """
    if not attempt_ids:
        return {}
    last = (
        select(EventRow.attempt_id, func.max(EventRow.seq).label("seq"))
        .where(EventRow.attempt_id.in_(attempt_ids), EventRow.kind.in_((ASKED, ANSWERED)))
        .group_by(EventRow.attempt_id)
        .subquery()
    )
    events = connection.execute(
        select(EventRow.attempt_id, EventRow.kind, EventRow.at, EventRow.data).join(
            last, (EventRow.attempt_id == last.c.attempt_id) & (EventRow.seq == last.c.seq)
        )
    ).all()
    said = select(CommentRow.id, CommentRow.text, PersonRow.name)
    said = said.outerjoin(PersonRow, PersonRow.id == CommentRow.author_id)
    comments = {
        row.id: row
        for row in connection.execute(
            said.where(CommentRow.id.in_([one.data.get("comment_id") for one in events]))
        )
    }
    return {
        one.attempt_id: LastWord(comment.id, one.kind == ANSWERED, comment.name, comment.text, one.at)
        for one in events
        if (comment := comments.get(one.data.get("comment_id"))) is not None
    }
