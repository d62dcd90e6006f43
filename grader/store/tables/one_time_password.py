"""A one-time password that nobody has used yet, so that it can be handed out again. Never holds it readable."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from grader.store.tables.base import Base, Id


class OneTimePasswordRow(Base):
    """The last one of one person, until they sign in with it.

    Attributes:
        course_id: whose staff hands it out.
        sealed: encrypted with the service's secret key, which is not in the database.
        expires_at: it can't be fetched afterwards; it still opens the account.
    """

    __tablename__ = "one_time_passwords"

    person_id: Mapped[Id] = mapped_column(ForeignKey("people.id", ondelete="CASCADE"))
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"), index=True)
    sealed: Mapped[str]
    expires_at: Mapped[datetime]
