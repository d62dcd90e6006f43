"""What was handed in, and when. The files are kept once however often they come; nothing here says how they did."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from grader.store.tables.base import Base, Digest, Id, JsonText, SafeString


class SourceRow(Base):
    """The files of a submission under the digest of their paths and texts (`Submission.digest`)."""

    __tablename__ = "sources"

    digest: Mapped[Digest] = mapped_column(primary_key=True)
    files: Mapped[list[Any]] = mapped_column(JsonText())
    """`[[path, text], …]`, sorted by path."""
    size: Mapped[int]


class SubmissionRow(Base):
    """One handing in.

    Attributes:
        name: what it is called in reports.
        submitted_at: by the database's clock; how late that is follows from the due date in force.
        idempotency_key: the client's own name of this request; the same key again is the same submission.
    """

    __tablename__ = "submissions"
    __table_args__ = (
        UniqueConstraint("person_id", "idempotency_key"),
        Index("ix_submissions_digest", "digest"),
    )

    id: Mapped[Id]
    person_id: Mapped[int] = mapped_column(ForeignKey("people.id", ondelete="CASCADE"))
    course_task_id: Mapped[int] = mapped_column(ForeignKey("course_tasks.id", ondelete="CASCADE"), index=True)
    digest: Mapped[Digest] = mapped_column(ForeignKey("sources.digest"))
    name: Mapped[str] = mapped_column(SafeString(200))
    submitted_at: Mapped[datetime]
    idempotency_key: Mapped[str | None] = mapped_column(SafeString(80))
