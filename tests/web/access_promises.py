"""What each door promises about each person of the school, and the objects that are `anna`'s and her course's."""

from __future__ import annotations

from grader.store.tables.api_token import Scope
from grader.web.security.access import AccessRule
from tests.web.routes import Way

OBJECTS = (
    AccessRule.COURSE,
    AccessRule.COURSE_STAFF,
    AccessRule.ATTEMPT,
    AccessRule.ATTEMPT_STAFF,
    AccessRule.BATCH_STAFF,
)


def is_staff(login: str | None) -> bool:
    return login in ("ines", "ada")


def is_open(way: Way, login: str | None) -> bool:
    """What the route's door promises about this person and the objects of `campus.own`."""
    if login is None:
        return False
    takes_part = login in ("anna", "ben", "robot")
    if way.path == "/api/v1/course-tasks/{course_task_id}/submissions":
        # Whoever takes no part hands nothing in, administrators either.
        return takes_part or login == "ines"
    return {
        AccessRule.PUBLIC: True,
        AccessRule.SIGNED_IN: True,
        AccessRule.COURSE: takes_part or is_staff(login),
        AccessRule.COURSE_STAFF: is_staff(login),
        AccessRule.ATTEMPT: login == "anna" or is_staff(login),
        AccessRule.ATTEMPT_STAFF: is_staff(login),
        AccessRule.BATCH_STAFF: is_staff(login),
        AccessRule.STAFF: login in ("ines", "otto", "ada"),
        AccessRule.ADMIN: login == "ada",
        # No account opens it, a token made for workers does.
        AccessRule.WORKER: False,
        None: False,
    }[way.access_rule]


def needed_scope(way: Way) -> Scope:
    """How far a token has to go for this route."""
    if way.access_rule is AccessRule.WORKER:
        return Scope.JUDGE
    if not way.changes:
        return Scope.READ
    return (
        Scope.SUBMIT
        if way.access_rule in (AccessRule.SIGNED_IN, AccessRule.COURSE, AccessRule.ATTEMPT)
        else Scope.MANAGE
    )
