"""Deliveries of mails, webhooks and grades, and what is known of the ways that they go."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0011"
branch_labels = None
depends_on = None

Int = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Time = sa.DateTime(timezone=True)
_WAITING = sa.text("state = 'waiting'")


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "deliveries",
        sa.Column("id", Int, nullable=False),
        sa.Column("channel", sa.String(40), nullable=False),
        sa.Column("receiver", sa.String(300), nullable=False),
        sa.Column("topic", sa.String(80), nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("key", sa.String(200), nullable=False),
        sa.Column("course_id", Int, nullable=True),
        sa.Column("created_at", Time, nullable=False),
        sa.Column("due_at", Time, nullable=False),
        sa.Column("started_at", Time, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("taken_until", Time, nullable=True),
        sa.Column("tries", Int, nullable=False),
        sa.Column("joined_id", Int, nullable=True),
        sa.Column("tried_at", Time, nullable=True),
        sa.Column("answer", sa.String(500), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_deliveries"),
        sa.UniqueConstraint("key", name="uq_deliveries_key"),
        sa.CheckConstraint(
            "state IN ('waiting', 'delivered', 'given_up')", name=op.f("ck_deliveries_deliverystate")
        ),
        sa.ForeignKeyConstraint(
            ["course_id"], ["courses.id"], name="fk_deliveries_course_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["joined_id"], ["deliveries.id"], name="fk_deliveries_joined_id", ondelete="CASCADE"
        ),
    )
    for name, columns in (("due", ["channel", "due_at"]), ("receiver", ["channel", "receiver"])):
        op.create_index(
            f"ix_deliveries_{name}",
            "deliveries",
            columns,
            sqlite_where=_WAITING,
            postgresql_where=_WAITING,
        )
    op.create_index("ix_deliveries_course", "deliveries", ["course_id", "channel", "id"])
    op.create_index("ix_deliveries_joined_id", "deliveries", ["joined_id"])
    op.create_table(
        "delivery_channels",
        sa.Column("name", sa.String(40), nullable=False),
        sa.Column("set_up", sa.Boolean, nullable=False),
        sa.Column("problem", sa.String(500), nullable=True),
        sa.Column("noted_at", Time, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_delivery_channels"),
    )


def downgrade() -> None:
    """Drop them; what was not delivered is lost."""
    op.drop_table("delivery_channels")
    op.drop_table("deliveries")
