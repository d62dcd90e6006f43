"""Rules that say how long courses keep what attempts leave, what they deleted, and which submissions look alike."""

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
    op.create_table(
        "comparisons",
        sa.Column("course_task_id", Int, nullable=False),
        sa.Column("newest_attempt", Int, nullable=False),
        sa.Column("num_compared", Int, nullable=False),
        sa.Column("num_too_large", Int, nullable=False),
        sa.Column("num_earlier", Int, nullable=False),
        sa.Column("skeleton", sa.Boolean(), nullable=False),
        sa.Column("compared_at", Time, nullable=False),
        sa.PrimaryKeyConstraint("course_task_id", name="pk_comparisons"),
        sa.ForeignKeyConstraint(
            ["course_task_id"], ["course_tasks.id"], name="fk_comparisons_course_task_id", ondelete="CASCADE"
        ),
    )
    op.create_table(
        "similar_pairs",
        sa.Column("course_task_id", Int, nullable=False),
        sa.Column("attempt_a", Int, nullable=False),
        sa.Column("attempt_b", Int, nullable=False),
        sa.Column("num_lines", Int, nullable=False),
        sa.Column("share_a", sa.Double(), nullable=False),
        sa.Column("share_b", sa.Double(), nullable=False),
        sa.Column("passages", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("course_task_id", "attempt_a", "attempt_b", name="pk_similar_pairs"),
        sa.ForeignKeyConstraint(
            ["course_task_id"],
            ["course_tasks.id"],
            name="fk_similar_pairs_course_task_id",
            ondelete="CASCADE",
        ),
        *(
            sa.ForeignKeyConstraint(
                [f"attempt_{side}"],
                ["attempts.id"],
                name=f"fk_similar_pairs_attempt_{side}",
                ondelete="CASCADE",
            )
            for side in "ab"
        ),
    )
    for side in "ab":
        op.create_index(f"ix_similar_pairs_attempt_{side}", "similar_pairs", [f"attempt_{side}"])


def downgrade() -> None:
    """Drop them; what was deleted stays so."""
    op.drop_table("similar_pairs")
    op.drop_table("comparisons")
    op.drop_table("deleted_content")
    op.drop_table("retention_rules")
