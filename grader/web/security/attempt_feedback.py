"""Whose an attempt is, who is shown it, and until when they are not told how it went. Who is let in is `access`."""

from __future__ import annotations

from datetime import datetime

from grader.store.attempts.attempts import StoredAttempt
from grader.store.courses.learners import is_among
from grader.store.grading.credits import people_of
from grader.store.grading.gradebook import feedback_opens_at
from grader.web.security.visitor import Visitor
from grader.web.service import WebService


def is_own(service: WebService, visitor: Visitor, facts: StoredAttempt) -> bool:
    """Whether an attempt counts for the visitor: handed in by them, or by their group."""
    own = facts.person_id == visitor.account.id
    return own or visitor.account.id in people_of(service.store, facts.id)


def is_shown(service: WebService, visitor: Visitor, facts: StoredAttempt) -> bool:
    """Whether the visitor is shown an attempt as staff: it counts for a learner whom they are shown."""
    if visitor.reads_learner(facts.course_id, facts.role, facts.section):
        return True
    shown = visitor.learners(facts.course_id) if visitor.reads(facts.course_id) else None
    return shown is not None and is_among(service.store, facts.id, shown)


def hidden_until(service: WebService, visitor: Visitor, facts: StoredAttempt) -> datetime | None:
    """Until when this visitor may not see how the attempt went, or None: they may."""
    if visitor.reads(facts.course_id):
        return None
    # What is told to one of a group is told to all of it: by the last of their dates.
    opens = (
        feedback_opens_at(service.store, facts.course_task_id, one)
        for one in people_of(service.store, facts.id)
    )
    return max((at for at in opens if at is not None), default=None)
