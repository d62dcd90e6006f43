"""Tasks that are still drafts, a course's own text, last sign-ins, and held attempts that count as nothing yet."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

Time = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Add the columns; what is held keeps its place in the gradebook and loses its points until it is decided."""
    op.add_column("course_tasks", sa.Column("draft_since", Time, nullable=True))
    op.add_column("courses", sa.Column("about", sa.Text(), nullable=True))
    op.add_column("people", sa.Column("signed_in_at", Time, nullable=True))
    op.create_index("ix_grades_verdict", "grades", ["verdict"])
    op.execute("UPDATE standings SET points = 0 WHERE verdict = 'held'")


def downgrade() -> None:
    """Drop them; drafts are there for everybody then."""
    op.drop_index("ix_grades_verdict", "grades")
    op.drop_column("people", "signed_in_at")
    op.drop_column("courses", "about")
    op.drop_column("course_tasks", "draft_since")
