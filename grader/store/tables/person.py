"""Somebody, or something, that signs in. Never holds a password, only its hash."""

from __future__ import annotations

import secrets
from datetime import datetime
from enum import StrEnum
from functools import partial

from sqlalchemy.orm import Mapped, mapped_column

from grader.store.tables.base import Base, Id, SafeString, one_of


class Role(StrEnum):
    """What somebody may do, on the site (`SITE_ROLES`) or in a course (`COURSE_ROLES`)."""

    LEARNER = "learner"
    INSTRUCTOR = "instructor"
    ASSISTANT = "assistant"
    """Grades learners in a course, and sees none of its settings."""
    OBSERVER = "observer"
    """Sees what a course's staff sees of its learners, and changes nothing."""
    ADMIN = "admin"
    CI = "ci"


SITE_ROLES = (Role.LEARNER, Role.INSTRUCTOR, Role.ADMIN, Role.CI)
"""What somebody can be on the site; what they are in a course is said there."""
COURSE_ROLES = (Role.LEARNER, Role.ASSISTANT, Role.OBSERVER, Role.INSTRUCTOR)
"""What somebody can be in a course."""
TRIES_OUT = (Role.INSTRUCTOR, Role.ASSISTANT)
"""Who hands in at any time and as often as they like, also for drafts: to try a task out."""


class PersonRow(Base):
    """An account.

    Attributes:
        login: unique, lower case.
        email: where mail reaches them, lower case; None: nobody said. Not unique, and no proof of who somebody is.
        password_hash: Argon2; None: no password opens this account.
        must_change: the password is a one-time one.
        session_epoch: raised whenever all sessions of this account shall end; sessions name the epoch of their start.
        signed_in_at: last sign-in, in a browser or for a token; None: never.
        disabled_at: when set, neither password nor token opens anything.
        language: code of the language that they are mailed in; "": nobody knows.
    """

    __tablename__ = "people"

    id: Mapped[Id]
    login: Mapped[str] = mapped_column(SafeString(120), unique=True)
    name: Mapped[str] = mapped_column(SafeString(200))
    role: Mapped[Role] = mapped_column(one_of(Role))
    password_hash: Mapped[str | None]
    must_change: Mapped[bool] = mapped_column(default=False)
    # A database may give the number of an erased account again: a cookie of that one is not to open this one.
    session_epoch: Mapped[int] = mapped_column(default=partial(secrets.randbelow, 1 << 31))
    created_at: Mapped[datetime]
    disabled_at: Mapped[datetime | None]
    signed_in_at: Mapped[datetime | None]
    email: Mapped[str | None] = mapped_column(SafeString(254), index=True)
    language: Mapped[str] = mapped_column(SafeString(8), default="")
