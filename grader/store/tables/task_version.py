"""Versions of tasks that courses have set: whole copies, so that whoever judges needs no folder of tasks."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.orm import Mapped, mapped_column

from grader.store.tables.base import Base, Digest, JsonText, SafeString


class TaskVersionRow(Base):
    """A task at a version.

    Attributes:
        version: digest of the task's files, as `grader.catalog.tasks.task_folders` computes it.
        digest, size: of the packed copy in the file store.
        wall_s: profile → seconds that a run may take there, for workers whose time is short.
    """

    __tablename__ = "task_versions"

    version: Mapped[Digest] = mapped_column(primary_key=True)
    task: Mapped[str] = mapped_column(SafeString(120))
    digest: Mapped[Digest]
    size: Mapped[int]
    wall_s: Mapped[dict[str, float]] = mapped_column(JsonText())
    kept_at: Mapped[datetime]
