"""Submissions, attempts, their events, messages and grades."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

Int = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Time = sa.DateTime(timezone=True)
LANES = (
    "interactive",
    "regrade",
)
ATTEMPTSTATES = (
    "queued",
    "running",
    "judged",
    "failed",
    "cancelled",
)
SEVERITYS = (
    "error",
    "warning",
    "hint",
    "review",
)
VERDICTS = (
    "judge_error",
    "held",
    "timed_out",
    "deadlocked",
    "out_of_memory",
    "crashed",
    "rejected",
    "accepted",
)


def one_of(name: str, *values: str) -> sa.Enum:
    """A column that takes these values and nothing else."""
    return sa.Enum(*values, name=name, native_enum=False, create_constraint=True, length=16)


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "sources",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("files", sa.Text(), nullable=False),
        sa.Column("size", Int, nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_sources")),
    )
    op.create_table(
        "submissions",
        sa.Column("id", Int, nullable=False),
        sa.Column("person_id", Int, nullable=False),
        sa.Column("course_task_id", Int, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("submitted_at", Time, nullable=False),
        sa.Column("idempotency_key", sa.String(80), nullable=True),
        sa.ForeignKeyConstraint(
            ["course_task_id"],
            ["course_tasks.id"],
            name=op.f("fk_submissions_course_task_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["digest"], ["sources.digest"], name=op.f("fk_submissions_digest")),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.id"], name=op.f("fk_submissions_person_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_submissions")),
        sa.UniqueConstraint(
            "person_id", "idempotency_key", name=op.f("uq_submissions_person_id_idempotency_key")
        ),
    )
    op.create_index(op.f("ix_submissions_course_task_id"), "submissions", ["course_task_id"], unique=False)
    op.create_index("ix_submissions_digest", "submissions", ["digest"], unique=False)
    op.create_table(
        "attempts",
        sa.Column("id", Int, nullable=False),
        sa.Column("submission_id", Int, nullable=False),
        sa.Column("person_id", Int, nullable=False),
        sa.Column("course_task_id", Int, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("task", sa.String(120), nullable=False),
        sa.Column("task_version", sa.String(length=64), nullable=False),
        sa.Column("profile", sa.String(40), nullable=False),
        sa.Column("need", sa.String(16), nullable=False),
        sa.Column("lane", one_of("lane", *LANES), nullable=False),
        sa.Column("state", one_of("attemptstate", *ATTEMPTSTATES), nullable=False),
        sa.Column("forced", sa.Boolean(), nullable=False),
        sa.Column("queued_at", Time, nullable=False),
        sa.Column("available_at", Time, nullable=False),
        sa.Column("claimed_at", Time, nullable=True),
        sa.Column("finished_at", Time, nullable=True),
        sa.Column("phase", sa.String(40), nullable=True),
        sa.Column("worker", sa.String(120), nullable=True),
        sa.Column("lease_token", Int, nullable=False),
        sa.Column("lease_until", Time, nullable=True),
        sa.Column("tries", Int, nullable=False),
        sa.Column("cancel_requested_at", Time, nullable=True),
        sa.Column("cached_from", Int, nullable=True),
        sa.Column("regrade_of", Int, nullable=True),
        sa.Column("counts", sa.Boolean(), nullable=False),
        sa.Column("batch", sa.String(40), nullable=True),
        sa.Column("failure", sa.Text(), nullable=True),
        sa.Column("event_seq", Int, nullable=False),
        sa.ForeignKeyConstraint(
            ["cached_from"], ["attempts.id"], name=op.f("fk_attempts_cached_from"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["course_task_id"],
            ["course_tasks.id"],
            name=op.f("fk_attempts_course_task_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.id"], name=op.f("fk_attempts_person_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["regrade_of"], ["attempts.id"], name=op.f("fk_attempts_regrade_of"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["submission_id"], ["submissions.id"], name=op.f("fk_attempts_submission_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempts")),
    )
    op.create_index("ix_attempts_batch", "attempts", ["batch"], unique=False)
    op.create_index("ix_attempts_cached_from", "attempts", ["cached_from"], unique=False)
    op.create_index(
        "ix_attempts_leases",
        "attempts",
        ["lease_until"],
        unique=False,
        sqlite_where=sa.text("state = 'running'"),
        postgresql_where=sa.text("state = 'running'"),
    )
    op.create_index(
        "ix_attempts_measured", "attempts", ["course_task_id", "need", "finished_at"], unique=False
    )
    op.create_index("ix_attempts_of_person", "attempts", ["person_id", "course_task_id", "id"], unique=False)
    op.create_index("ix_attempts_of_task", "attempts", ["course_task_id", "person_id", "id"], unique=False)
    op.create_index("ix_attempts_regrade_of", "attempts", ["regrade_of"], unique=False)
    op.create_index("ix_attempts_same", "attempts", ["digest", "task_version", "profile"], unique=False)
    op.create_index("ix_attempts_submission_id", "attempts", ["submission_id"], unique=False)
    op.create_index(
        "ix_attempts_waiting",
        "attempts",
        ["lane", "need", "person_id", "id"],
        unique=False,
        sqlite_where=sa.text("state = 'queued'"),
        postgresql_where=sa.text("state = 'queued'"),
    )
    op.create_table(
        "events",
        sa.Column("id", Int, nullable=False),
        sa.Column("attempt_id", Int, nullable=True),
        sa.Column("seq", Int, nullable=False),
        sa.Column("subject", sa.String(80), nullable=True),
        sa.Column("kind", sa.String(40), nullable=False),
        sa.Column("at", Time, nullable=False),
        sa.Column("actor_id", Int, nullable=True),
        sa.Column("data", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["actor_id"], ["people.id"], name=op.f("fk_events_actor_id"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["attempt_id"], ["attempts.id"], name=op.f("fk_events_attempt_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_events")),
        sa.UniqueConstraint("attempt_id", "seq", name=op.f("uq_events_attempt_id_seq")),
    )
    op.create_index(op.f("ix_events_actor_id"), "events", ["actor_id"], unique=False)
    op.create_index("ix_events_subject", "events", ["subject", "id"], unique=False)
    op.create_table(
        "grade_codes",
        sa.Column("attempt_id", Int, nullable=False),
        sa.Column("code", sa.String(20), nullable=False),
        sa.Column("severity", one_of("severity", *SEVERITYS), nullable=False),
        sa.Column("course_task_id", Int, nullable=False),
        sa.Column("person_id", Int, nullable=False),
        sa.ForeignKeyConstraint(
            ["attempt_id"], ["attempts.id"], name=op.f("fk_grade_codes_attempt_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["course_task_id"],
            ["course_tasks.id"],
            name=op.f("fk_grade_codes_course_task_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.id"], name=op.f("fk_grade_codes_person_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("attempt_id", "code", name=op.f("pk_grade_codes")),
    )
    op.create_index(
        "ix_grade_codes_class",
        "grade_codes",
        ["course_task_id", "code", "person_id", "severity"],
        unique=False,
    )
    op.create_index(op.f("ix_grade_codes_person_id"), "grade_codes", ["person_id"], unique=False)
    op.create_table(
        "grades",
        sa.Column("attempt_id", Int, nullable=False),
        sa.Column("verdict", one_of("verdict", *VERDICTS), nullable=False),
        sa.Column("points", sa.Double(), nullable=False),
        sa.Column("max_points", sa.Double(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("created_at", Time, nullable=False),
        sa.ForeignKeyConstraint(
            ["attempt_id"], ["attempts.id"], name=op.f("fk_grades_attempt_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("attempt_id", name=op.f("pk_grades")),
    )
    op.create_table(
        "outbox",
        sa.Column("id", Int, nullable=False),
        sa.Column("topic", sa.String(40), nullable=False),
        sa.Column("attempt_id", Int, nullable=False),
        sa.Column("created_at", Time, nullable=False),
        sa.Column("taken_until", Time, nullable=True),
        sa.Column("sent_at", Time, nullable=True),
        sa.Column("tries", Int, nullable=False),
        sa.ForeignKeyConstraint(
            ["attempt_id"], ["attempts.id"], name=op.f("fk_outbox_attempt_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
    )
    op.create_index(op.f("ix_outbox_attempt_id"), "outbox", ["attempt_id"], unique=False)
    op.create_index(
        "ix_outbox_unsent",
        "outbox",
        ["id"],
        unique=False,
        sqlite_where=sa.text("sent_at IS NULL"),
        postgresql_where=sa.text("sent_at IS NULL"),
    )


def downgrade() -> None:
    """Drop them with all they hold."""
    for table in (
        "outbox",
        "grades",
        "grade_codes",
        "events",
        "attempts",
        "submissions",
        "sources",
    ):
        op.drop_table(table)
