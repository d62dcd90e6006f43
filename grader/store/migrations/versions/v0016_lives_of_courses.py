"""Drafts and archives of courses, late days, more attempts for some, and exams."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

Int = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Time = sa.DateTime(timezone=True)
_COLUMNS = (
    ("courses", "draft_since", Time),
    ("courses", "archived_at", Time),
    ("courses", "deleted_at", Time),
    ("courses", "file_name", sa.String(120)),
    ("courses", "late_days_total", Int),
    ("courses", "late_days_per_task", Int),
    ("course_tasks", "grace_minutes", Int),
    ("course_tasks", "exam_minutes", Int),
    ("course_tasks", "released_at", Time),
    ("extensions", "extra_total", Int),
    ("extensions", "extra_per_day", Int),
    ("extensions", "extra_minutes", Int),
)


def upgrade() -> None:
    """Add them; courses stay open, and extensions move a date."""
    for table, name, kind in _COLUMNS:
        op.add_column(table, sa.Column(name, kind, nullable=True))
    with op.batch_alter_table("extensions") as extensions:
        extensions.alter_column("due_at", existing_type=Time, nullable=True)
    op.create_table(
        "exam_sittings",
        sa.Column("course_task_id", Int, nullable=False),
        sa.Column("person_id", Int, nullable=False),
        sa.Column("begun_at", Time, nullable=False),
        sa.PrimaryKeyConstraint("course_task_id", "person_id", name="pk_exam_sittings"),
        sa.ForeignKeyConstraint(
            ["course_task_id"],
            ["course_tasks.id"],
            name="fk_exam_sittings_course_task_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.id"], name="fk_exam_sittings_person_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_exam_sittings_person_id", "exam_sittings", ["person_id"])
    op.create_table(
        "late_day_uses",
        sa.Column("attempt_id", Int, nullable=False),
        sa.Column("person_id", Int, nullable=False),
        sa.Column("days", Int, nullable=False),
        sa.PrimaryKeyConstraint("attempt_id", "person_id", name="pk_late_day_uses"),
        sa.ForeignKeyConstraint(
            ["attempt_id"], ["attempts.id"], name="fk_late_day_uses_attempt_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.id"], name="fk_late_day_uses_person_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_late_day_uses_person_id", "late_day_uses", ["person_id"])


def downgrade() -> None:
    """Drop them; who has more attempts and no other date has what everybody has, and exams take what comes."""
    op.drop_table("late_day_uses")
    op.drop_table("exam_sittings")
    op.execute("DELETE FROM extensions WHERE due_at IS NULL")
    # Nobody comes back who was kept out: what was prepared or put away is closed.
    op.execute(
        "UPDATE courses SET closed_at = coalesce(closed_at, archived_at, draft_since) "
        "WHERE archived_at IS NOT NULL OR draft_since IS NOT NULL"
    )
    with op.batch_alter_table("extensions") as extensions:
        extensions.alter_column("due_at", existing_type=Time, nullable=False)
    for table, name, _ in reversed(_COLUMNS):
        op.drop_column(table, name)
