"""Kept versions of tasks, where courses come from, and versions that wait for a course's staff."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add them; versions that were set before are kept at the next start where their folders are still at them."""
    op.create_table(
        "task_versions",
        sa.Column("version", sa.String(64), nullable=False),
        sa.Column("task", sa.String(120), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("size", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False),
        sa.Column("wall_s", sa.Text(), nullable=False),
        sa.Column("kept_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("version", name=op.f("pk_task_versions")),
    )
    op.add_column("courses", sa.Column("source", sa.Text(), nullable=True))
    op.add_column("course_tasks", sa.Column("offered_version", sa.String(64), nullable=True))


def downgrade() -> None:
    """Drop them: workers need the folders of tasks again, at the versions that courses have set."""
    op.drop_column("course_tasks", "offered_version")
    op.drop_column("courses", "source")
    op.drop_table("task_versions")
