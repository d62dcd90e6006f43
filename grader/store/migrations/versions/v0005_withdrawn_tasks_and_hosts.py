"""Tasks that a course has withdrawn, and what a worker last said of its host."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; nothing was withdrawn so far."""
    op.add_column("course_tasks", sa.Column("withdrawn_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("workers", sa.Column("host", sa.Text(), nullable=True))


def downgrade() -> None:
    """Drop them: what was withdrawn is set again, as it was before."""
    op.drop_column("workers", "host")
    op.drop_column("course_tasks", "withdrawn_at")
