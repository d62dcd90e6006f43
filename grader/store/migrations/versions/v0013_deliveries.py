"""Deliveries of mails, webhooks and grades; announcements, webhooks, and what people want mailed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

Int = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Time = sa.DateTime(timezone=True)
_KINDS = ("verdict", "held", "decided", "comment", "date", "announcement", "summary")
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
    _mail()
    _announcements()
    _webhooks()


def _mail() -> None:
    op.create_table(
        "mail_choices",
        sa.Column("person_id", Int, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("wanted", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("person_id", "kind", name="pk_mail_choices"),
        sa.CheckConstraint(
            f"kind IN ({', '.join(repr(one) for one in _KINDS)})", name=op.f("ck_mail_choices_mailkind")
        ),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.id"], name="fk_mail_choices_person_id", ondelete="CASCADE"
        ),
    )
    op.create_table(
        "bounced_addresses",
        sa.Column("address", sa.String(254), nullable=False),
        sa.Column("reason", sa.String(500), nullable=False),
        sa.Column("bounced_at", Time, nullable=False),
        sa.PrimaryKeyConstraint("address", name="pk_bounced_addresses"),
    )


def _announcements() -> None:
    op.create_table(
        "announcements",
        sa.Column("id", Int, nullable=False),
        sa.Column("course_id", Int, nullable=False),
        sa.Column("author_id", Int, nullable=True),
        sa.Column("title", sa.String(200), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("created_at", Time, nullable=False),
        sa.Column("pinned", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_announcements"),
        sa.ForeignKeyConstraint(
            ["course_id"], ["courses.id"], name="fk_announcements_course_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["author_id"], ["people.id"], name="fk_announcements_author_id", ondelete="SET NULL"
        ),
    )
    op.create_index("ix_announcements_course_id", "announcements", ["course_id"])
    op.create_index("ix_announcements_author_id", "announcements", ["author_id"])


def _webhooks() -> None:
    op.create_table(
        "webhooks",
        sa.Column("id", Int, nullable=False),
        sa.Column("course_id", Int, nullable=False),
        sa.Column("url", sa.String(1000), nullable=False),
        sa.Column("events", sa.Text, nullable=False),
        sa.Column("salt", sa.String(64), nullable=False),
        sa.Column("created_at", Time, nullable=False),
        sa.Column("num_failures", Int, nullable=False),
        sa.Column("failed_since", Time, nullable=True),
        sa.Column("disabled_at", Time, nullable=True),
        sa.Column("problem", sa.String(500), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_webhooks"),
        sa.ForeignKeyConstraint(
            ["course_id"], ["courses.id"], name="fk_webhooks_course_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_webhooks_course_id", "webhooks", ["course_id"])


def downgrade() -> None:
    """Drop them; what was not delivered is lost."""
    for table in ("webhooks", "announcements", "bounced_addresses", "mail_choices", "delivery_channels"):
        op.drop_table(table)
    op.drop_table("deliveries")
