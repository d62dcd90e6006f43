"""What roles are called on pages."""

from __future__ import annotations

from grader.store.tables.person import Role
from grader.translation import N_, gettext

_NAMES: dict[str, str] = {
    Role.LEARNER: N_("learner"),
    Role.INSTRUCTOR: N_("instructor"),
    Role.ASSISTANT: N_("assistant"),
    Role.OBSERVER: N_("observer"),
    Role.ADMIN: N_("admin"),
    Role.CI: N_("program (CI job)"),
}
_MANY: dict[str, str] = {
    Role.LEARNER: N_("learners"),
    Role.INSTRUCTOR: N_("instructors"),
    Role.ASSISTANT: N_("assistants"),
    Role.OBSERVER: N_("observers"),
}


def role_name(role: str) -> str:
    """A `Role` in the reader's language."""
    return gettext(_NAMES.get(role, role))


def role_plural(role: str) -> str:
    """Those who have a role of a course, in the reader's language."""
    return gettext(_MANY[role])
