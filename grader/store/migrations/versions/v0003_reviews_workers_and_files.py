"""What people add to grades, who works at the queue, and the files that attempts leave."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

Int = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Time = sa.DateTime(timezone=True)
LANES = (
    "interactive",
    "regrade",
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
        "blobs",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("size", Int, nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", Time, nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_blobs")),
    )
    op.create_table(
        "workers",
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("needs", sa.Text(), nullable=False),
        sa.Column("slots", Int, nullable=False),
        sa.Column("seen_at", Time, nullable=False),
        sa.Column("draining", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_workers")),
    )
    op.create_table(
        "gates",
        sa.Column("name", sa.String(40), nullable=False),
        sa.Column("since", Time, nullable=False),
        sa.Column("actor_id", Int, nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["actor_id"], ["people.id"], name=op.f("fk_gates_actor_id"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_gates")),
    )
    op.create_index(op.f("ix_gates_actor_id"), "gates", ["actor_id"], unique=False)
    op.create_table(
        "turns",
        sa.Column("person_id", Int, nullable=False),
        sa.Column("lane", one_of("lane", *LANES), nullable=False),
        sa.Column("turn", Int, nullable=False),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.id"], name=op.f("fk_turns_person_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("person_id", "lane", name=op.f("pk_turns")),
    )
    op.create_index("ix_turns_last", "turns", ["lane", "turn"], unique=False)
    op.create_table(
        "artifacts",
        sa.Column("attempt_id", Int, nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("size", Int, nullable=False),
        sa.ForeignKeyConstraint(
            ["attempt_id"], ["attempts.id"], name=op.f("fk_artifacts_attempt_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("attempt_id", "name", name=op.f("pk_artifacts")),
    )
    op.create_index(op.f("ix_artifacts_digest"), "artifacts", ["digest"], unique=False)
    op.create_table(
        "comments",
        sa.Column("id", Int, nullable=False),
        sa.Column("attempt_id", Int, nullable=False),
        sa.Column("author_id", Int, nullable=True),
        sa.Column("path", sa.String(300), nullable=True),
        sa.Column("line", Int, nullable=True),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("created_at", Time, nullable=False),
        sa.ForeignKeyConstraint(
            ["attempt_id"], ["attempts.id"], name=op.f("fk_comments_attempt_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["author_id"], ["people.id"], name=op.f("fk_comments_author_id"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_comments")),
    )
    op.create_index(op.f("ix_comments_attempt_id"), "comments", ["attempt_id"], unique=False)
    op.create_index(op.f("ix_comments_author_id"), "comments", ["author_id"], unique=False)
    op.create_table(
        "overrides",
        sa.Column("id", Int, nullable=False),
        sa.Column("attempt_id", Int, nullable=False),
        sa.Column("actor_id", Int, nullable=True),
        sa.Column("verdict", one_of("verdict", *VERDICTS), nullable=False),
        sa.Column("points", sa.Double(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("created_at", Time, nullable=False),
        sa.Column("withdrawn_at", Time, nullable=True),
        sa.ForeignKeyConstraint(
            ["actor_id"], ["people.id"], name=op.f("fk_overrides_actor_id"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["attempt_id"], ["attempts.id"], name=op.f("fk_overrides_attempt_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_overrides")),
    )
    op.create_index(op.f("ix_overrides_actor_id"), "overrides", ["actor_id"], unique=False)
    op.create_index(op.f("ix_overrides_attempt_id"), "overrides", ["attempt_id"], unique=False)


def downgrade() -> None:
    """Drop them with all they hold."""
    for table in (
        "overrides",
        "comments",
        "artifacts",
        "turns",
        "gates",
        "workers",
        "blobs",
    ):
        op.drop_table(table)
