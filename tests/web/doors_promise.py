"""What each door promises about each person of the school, and the objects that are `anna`'s and her course's."""

from __future__ import annotations

from grader.store.tables.api_token import Scope
from grader.web.visit import Door
from tests.web.routes import Way

OBJECTS = (Door.COURSE, Door.COURSE_STAFF, Door.ATTEMPT, Door.ATTEMPT_STAFF, Door.BATCH_STAFF)


def is_staff(login: str | None) -> bool:
    return login in ("ines", "ada")


def is_open(way: Way, login: str | None) -> bool:
    """What the route's door promises about this person and the objects of `campus.own`."""
    if login is None:
        return False
    takes_part = login in ("anna", "ben", "robot")
    if way.path.startswith("/api/v1/course-tasks/"):
        return takes_part or login == "ines"
    return {
        Door.PUBLIC: True,
        Door.SIGNED_IN: True,
        Door.COURSE: takes_part or is_staff(login),
        Door.COURSE_STAFF: is_staff(login),
        Door.ATTEMPT: login == "anna" or is_staff(login),
        Door.ATTEMPT_STAFF: is_staff(login),
        Door.BATCH_STAFF: is_staff(login),
        Door.STAFF: login in ("ines", "otto", "ada"),
        Door.ADMIN: login == "ada",
        None: False,
    }[way.door]


def needed_scope(way: Way) -> Scope:
    """How far a token has to go to change something by this route."""
    return Scope.SUBMIT if way.door in (Door.SIGNED_IN, Door.COURSE, Door.ATTEMPT) else Scope.MANAGE
