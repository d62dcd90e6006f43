"""Learning platforms by LTI 1.3: who they are, their launches, courses, people, links, columns and grades."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

Int = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Time = sa.DateTime(timezone=True)
_TABLES = (
    "lti_platforms",
    "lti_registrations",
    "lti_launches",
    "lti_contexts",
    "lti_members",
    "lti_links",
    "lti_line_items",
    "lti_scores",
)


def upgrade() -> None:
    """Add them."""
    _platforms()
    _launches()
    _contexts()
    _links()
    _scores()


def downgrade() -> None:
    """Drop them; accounts, enrolments and grades stay."""
    for table in reversed(_TABLES):
        op.drop_table(table)


def _platforms() -> None:
    op.create_table(
        "lti_platforms",
        sa.Column("id", Int, nullable=False),
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("issuer", sa.String(255), nullable=False),
        sa.Column("client_id", sa.String(255), nullable=False),
        sa.Column("auth_url", sa.Text, nullable=False),
        sa.Column("token_url", sa.Text, nullable=False),
        sa.Column("jwks_url", sa.Text, nullable=False),
        sa.Column("token_audience", sa.Text, nullable=True),
        sa.Column("deployments", sa.Text, nullable=False),
        sa.Column("asked_deployment", sa.Text, nullable=True),
        sa.Column("link_by_address", sa.Boolean, nullable=False),
        sa.Column("make_courses", sa.Boolean, nullable=False),
        sa.Column("created_at", Time, nullable=False),
        sa.Column("disabled_at", Time, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_lti_platforms"),
        sa.UniqueConstraint("issuer", "client_id", name="uq_lti_platforms_issuer_client_id"),
    )
    op.create_table(
        "lti_registrations",
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("created_at", Time, nullable=False),
        sa.Column("expires_at", Time, nullable=False),
        sa.Column("used_at", Time, nullable=True),
        sa.Column("platform_id", Int, nullable=True),
        sa.PrimaryKeyConstraint("digest", name="pk_lti_registrations"),
        _refers("lti_registrations", "platform_id", "lti_platforms"),
    )


def _launches() -> None:
    op.create_table(
        "lti_launches",
        sa.Column("id", Int, nullable=False),
        sa.Column("platform_id", Int, nullable=False),
        sa.Column("nonce_digest", sa.String(64), nullable=False),
        sa.Column("claims", sa.Text, nullable=False),
        sa.Column("person_id", Int, nullable=True),
        sa.Column("moved_at", Time, nullable=True),
        sa.Column("forget_at", Time, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_lti_launches"),
        sa.UniqueConstraint("nonce_digest", name="uq_lti_launches_nonce_digest"),
        _refers("lti_launches", "platform_id", "lti_platforms"),
        _refers("lti_launches", "person_id", "people"),
    )


def _contexts() -> None:
    op.create_table(
        "lti_contexts",
        sa.Column("id", Int, nullable=False),
        sa.Column("platform_id", Int, nullable=False),
        sa.Column("deployment", sa.String(255), nullable=False),
        sa.Column("context", sa.String(255), nullable=False),
        sa.Column("title", sa.String(200), nullable=False),
        sa.Column("course_id", Int, nullable=False),
        sa.Column("members_url", sa.Text, nullable=True),
        sa.Column("line_items_url", sa.Text, nullable=True),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("created_at", Time, nullable=False),
        sa.Column("roster_at", Time, nullable=True),
        sa.Column("roster_problem", sa.Text, nullable=True),
        sa.Column("num_left_out", Int, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_lti_contexts"),
        sa.UniqueConstraint(
            "platform_id", "deployment", "context", name="uq_lti_contexts_platform_id_deployment_context"
        ),
        _refers("lti_contexts", "platform_id", "lti_platforms"),
        _refers("lti_contexts", "course_id", "courses"),
    )
    op.create_index("ix_lti_contexts_course_id", "lti_contexts", ["course_id"])
    op.create_table(
        "lti_members",
        sa.Column("context_id", Int, nullable=False),
        sa.Column("person_id", Int, nullable=False),
        sa.Column("subject", sa.String(255), nullable=False),
        sa.Column("left_at", Time, nullable=True),
        sa.PrimaryKeyConstraint("context_id", "person_id", name="pk_lti_members"),
        _refers("lti_members", "context_id", "lti_contexts"),
        _refers("lti_members", "person_id", "people"),
    )
    op.create_index("ix_lti_members_person_id", "lti_members", ["person_id"])


def _links() -> None:
    op.create_table(
        "lti_links",
        sa.Column("id", Int, nullable=False),
        sa.Column("context_id", Int, nullable=False),
        sa.Column("resource_link", sa.String(255), nullable=False),
        sa.Column("course_task_id", Int, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_lti_links"),
        sa.UniqueConstraint("context_id", "resource_link", name="uq_lti_links_context_id_resource_link"),
        _refers("lti_links", "context_id", "lti_contexts"),
        _refers("lti_links", "course_task_id", "course_tasks"),
    )
    op.create_index("ix_lti_links_course_task_id", "lti_links", ["course_task_id"])
    op.create_table(
        "lti_line_items",
        sa.Column("context_id", Int, nullable=False),
        sa.Column("course_task_id", Int, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("context_id", "course_task_id", name="pk_lti_line_items"),
        _refers("lti_line_items", "context_id", "lti_contexts"),
        _refers("lti_line_items", "course_task_id", "course_tasks"),
    )
    op.create_index("ix_lti_line_items_course_task_id", "lti_line_items", ["course_task_id"])


def _scores() -> None:
    op.create_table(
        "lti_scores",
        sa.Column("context_id", Int, nullable=False),
        sa.Column("person_id", Int, nullable=False),
        sa.Column("course_task_id", Int, nullable=False),
        sa.Column("says", sa.Text, nullable=False),
        sa.Column("revision", Int, nullable=False),
        sa.Column("sent_revision", Int, nullable=False),
        sa.Column("stamped_at", Time, nullable=True),
        sa.Column("sent_at", Time, nullable=True),
        sa.PrimaryKeyConstraint("context_id", "person_id", "course_task_id", name="pk_lti_scores"),
        sa.ForeignKeyConstraint(
            ["context_id", "person_id"],
            ["lti_members.context_id", "lti_members.person_id"],
            name="fk_lti_scores_member",
            ondelete="CASCADE",
        ),
        _refers("lti_scores", "course_task_id", "course_tasks"),
    )
    op.create_index("ix_lti_scores_course_task_id", "lti_scores", ["course_task_id"])


def _refers(table: str, column: str, other: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{other}.id"], name=f"fk_{table}_{column}", ondelete="CASCADE")
