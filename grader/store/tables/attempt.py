"""One judging of one submission, from the queue to its end. The grade stands in a table of its own."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import ForeignKey, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from grader.store.tables.base import Base, Digest, Id, SafeString, one_of


class AttemptState(StrEnum):
    """Where an attempt stands; the last three are final."""

    QUEUED = "queued"
    RUNNING = "running"
    JUDGED = "judged"
    FAILED = "failed"
    """The grader's own fault, three times: `judge_error`."""
    CANCELLED = "cancelled"


FINAL = (AttemptState.JUDGED, AttemptState.FAILED, AttemptState.CANCELLED)


class Lane(StrEnum):
    """Who waits for it: a learner, or a regrade in the background."""

    INTERACTIVE = "interactive"
    REGRADE = "regrade"


class AttemptRow(Base):
    """An attempt.

    Attributes:
        submission_id, person_id, course_task_id, digest, task, task_version, profile, need: what is judged, repeated
            here so that claiming and counting read one table.
        forced: not to be answered from an earlier attempt's grade.
        available_at: not to be claimed before.
        queued_at, claimed_at, finished_at: of the last claim; by the database's clock.
        phase: what the worker does just now.
        lease_token: raised by every claim; who holds an older one is refused. lease_until: when the lease ends.
        tries: claims that were not given back.
        cancel_requested_at: set once; from then on its only end is `cancelled`.
        cached_from: the attempt whose grade was taken.
        regrade_of: the attempt that this one judges again; counts: whether its grade is in force.
        batch: name of the regrade that it belongs to.
        failure: why the last try failed, for staff.
        event_seq: number of its last event.
    """

    __tablename__ = "attempts"
    __table_args__ = (
        Index(
            "ix_attempts_waiting",
            "lane",
            "need",
            "person_id",
            "id",
            sqlite_where=text("state = 'queued'"),
            postgresql_where=text("state = 'queued'"),
        ),
        Index(
            "ix_attempts_leases",
            "lease_until",
            sqlite_where=text("state = 'running'"),
            postgresql_where=text("state = 'running'"),
        ),
        Index("ix_attempts_of_person", "person_id", "course_task_id", "id"),
        Index("ix_attempts_of_task", "course_task_id", "person_id", "id"),
        Index("ix_attempts_same", "digest", "task_version", "profile"),
        Index("ix_attempts_measured", "course_task_id", "need", "finished_at"),
        Index("ix_attempts_batch", "batch"),
        Index("ix_attempts_regrade_of", "regrade_of"),
        Index("ix_attempts_cached_from", "cached_from"),
        Index("ix_attempts_submission_id", "submission_id"),
    )

    id: Mapped[Id]
    submission_id: Mapped[int] = mapped_column(ForeignKey("submissions.id", ondelete="CASCADE"))
    person_id: Mapped[int] = mapped_column(ForeignKey("people.id", ondelete="CASCADE"))
    course_task_id: Mapped[int] = mapped_column(ForeignKey("course_tasks.id", ondelete="CASCADE"))
    digest: Mapped[Digest]
    task: Mapped[str] = mapped_column(SafeString(120))
    task_version: Mapped[Digest]
    profile: Mapped[str] = mapped_column(SafeString(40))
    need: Mapped[str] = mapped_column(SafeString(16))
    lane: Mapped[Lane] = mapped_column(one_of(Lane))
    state: Mapped[AttemptState] = mapped_column(one_of(AttemptState))
    forced: Mapped[bool] = mapped_column(default=False)
    queued_at: Mapped[datetime]
    available_at: Mapped[datetime]
    claimed_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    phase: Mapped[str | None] = mapped_column(SafeString(40))
    worker: Mapped[str | None] = mapped_column(SafeString(120))
    lease_token: Mapped[int] = mapped_column(default=0)
    lease_until: Mapped[datetime | None]
    tries: Mapped[int] = mapped_column(default=0)
    cancel_requested_at: Mapped[datetime | None]
    cached_from: Mapped[int | None] = mapped_column(ForeignKey("attempts.id", ondelete="SET NULL"))
    regrade_of: Mapped[int | None] = mapped_column(ForeignKey("attempts.id", ondelete="CASCADE"))
    counts: Mapped[bool] = mapped_column(default=True)
    batch: Mapped[str | None] = mapped_column(SafeString(40))
    failure: Mapped[str | None]
    event_seq: Mapped[int] = mapped_column(default=0)
