"""Rules that say how long courses keep what attempts leave, and what was deleted by them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

Int = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Time = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Add them; nothing is deleted until somebody sets a rule."""
    op.create_table(
        "retention_rules",
        sa.Column("course_id", Int, nullable=False),
        sa.Column("evidence_days", Int, nullable=True),
        sa.Column("scripts_days", Int, nullable=True),
        sa.PrimaryKeyConstraint("course_id", name="pk_retention_rules"),
        sa.ForeignKeyConstraint(
            ["course_id"], ["courses.id"], name="fk_retention_rules_course_id", ondelete="CASCADE"
        ),
    )
    op.create_table(
        "deleted_content",
        sa.Column("attempt_id", Int, nullable=False),
        sa.Column("evidence_at", Time, nullable=True),
        sa.Column("scripts_at", Time, nullable=True),
        sa.PrimaryKeyConstraint("attempt_id", name="pk_deleted_content"),
        sa.ForeignKeyConstraint(
            ["attempt_id"], ["attempts.id"], name="fk_deleted_content_attempt_id", ondelete="CASCADE"
        ),
    )


def downgrade() -> None:
    """Drop them; what was deleted stays so."""
    op.drop_table("deleted_content")
    op.drop_table("retention_rules")
