"""What each door promises about each person of the school, and the objects that are `anna`'s and her course's.

`tess` assists in anna's section, `otis` looks on, `mila` learns in the course and teaches the other one, `fred` took
part once, and `gone` was erased.
"""

from __future__ import annotations

from grader.store.tables.api_token import Scope
from grader.web.security.access import AccessRule
from tests.web.routes import Way

OBJECTS = (
    AccessRule.COURSE,
    AccessRule.COURSE_STAFF,
    AccessRule.COURSE_GRADER,
    AccessRule.COURSE_READER,
    AccessRule.ATTEMPT,
    AccessRule.ATTEMPT_STAFF,
    AccessRule.BATCH_STAFF,
)
SHOWN = (
    AccessRule.COURSE_READER,
    AccessRule.ATTEMPT,
    AccessRule.ATTEMPT_STAFF,
    AccessRule.BATCH_STAFF,
)
"""Doors that let in whoever is shown how a learner does, and whoever grades them if they would change something."""
LEARNERS = ("anna", "ben", "robot", "mila")


def is_staff(login: str | None) -> bool:
    return login in ("ines", "ada")


def reads(login: str | None) -> bool:
    return is_staff(login) or login in ("tess", "otis")


def grades(login: str | None) -> bool:
    return is_staff(login) or login == "tess"


def is_open(way: Way, login: str | None) -> bool:
    """What the route's door promises about this person and the objects of `campus.own`."""
    if login in (None, "gone"):
        return False
    if way.path == "/api/v1/course-tasks/{course_task_id}/submissions":
        # Whoever takes no part hands nothing in, administrators either; nor does who looks on.
        return login in (*LEARNERS, "ines", "tess")
    if way.access_rule in SHOWN:
        own = way.access_rule is AccessRule.ATTEMPT and login == "anna"
        return own or (grades(login) if way.changes else reads(login))
    return {
        AccessRule.PUBLIC: True,
        AccessRule.SIGNED_IN: True,
        AccessRule.COURSE: login in LEARNERS or reads(login),
        AccessRule.COURSE_STAFF: is_staff(login),
        AccessRule.COURSE_GRADER: grades(login),
        AccessRule.STAFF: login in ("ines", "otto", "mila", "ada"),
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
