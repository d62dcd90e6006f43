"""Roles that groups of a provider of sign-on give, and take again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

Int = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_ROLES = ("learner", "instructor", "assistant", "observer", "admin", "ci")


def upgrade() -> None:
    """Add the table; nobody has such a role yet."""
    op.create_table(
        "group_roles",
        sa.Column("id", Int, nullable=False),
        sa.Column("person_id", Int, nullable=False),
        sa.Column("issuer", sa.String(255), nullable=False),
        sa.Column("course_id", Int, nullable=True),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("base_role", sa.String(16), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_group_roles"),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.id"], name="fk_group_roles_person_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["course_id"], ["courses.id"], name="fk_group_roles_course_id", ondelete="CASCADE"
        ),
        sa.CheckConstraint(f"role IN ({', '.join(map(repr, _ROLES))})", name=op.f("ck_group_roles_role")),
    )
    op.create_index("ix_group_roles_person_id", "group_roles", ["person_id"])
    op.create_index("ix_group_roles_course_id", "group_roles", ["course_id"])


def downgrade() -> None:
    """Drop it; what groups have given stays, as if staff had."""
    op.drop_table("group_roles")
