"""A list of people that is taken over in the background, and how far that is. Never holds a password."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from grader.store.tables.base import Base, Id, JsonText, one_of


class Admission(StrEnum):
    """How people of a list who have no account come to one."""

    PASSWORD = "password"
    """An account with a one-time password, to be handed out."""
    INVITATION = "invitation"
    """A link of their own, by which they make the account themselves."""
    SIGN_ON = "sign_on"
    """An account without a password; their institution signs them in."""


class RosterImportRow(Base):
    """One list.

    Attributes:
        actor_id: who brought it; None: they were erased.
        lines: what the list says, line by line; empty once all are taken over.
        num_lines, num_done: how many there are, and how many of them are taken over.
        num_new, num_invited, num_enrolled, num_changed: accounts made, links made, accounts that were there enrolled,
            and participants whose section or id is another now.
        problems: (line, text) of what could not be taken over.
    """

    __tablename__ = "roster_imports"

    id: Mapped[Id]
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"), index=True)
    actor_id: Mapped[int | None] = mapped_column(ForeignKey("people.id", ondelete="SET NULL"))
    admission: Mapped[Admission] = mapped_column(one_of(Admission))
    lines: Mapped[Any] = mapped_column(JsonText)
    num_lines: Mapped[int]
    num_done: Mapped[int] = mapped_column(default=0)
    num_new: Mapped[int] = mapped_column(default=0)
    num_invited: Mapped[int] = mapped_column(default=0)
    num_enrolled: Mapped[int] = mapped_column(default=0)
    num_changed: Mapped[int] = mapped_column(default=0)
    problems: Mapped[Any] = mapped_column(JsonText)
    created_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]
