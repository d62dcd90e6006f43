"""Roles of assistants and observers, sections, addresses and languages, and who else vouches for an account."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

Int = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Time = sa.DateTime(timezone=True)
_ROLES = ("learner", "instructor", "admin", "ci")
_TABLES = ("people", "enrolments", "invitations")


def upgrade() -> None:
    """Add them; everybody keeps their role."""
    op.add_column("people", sa.Column("email", sa.String(254), nullable=True))
    op.add_column("people", sa.Column("language", sa.String(8), nullable=False, server_default=""))
    with op.batch_alter_table("people") as people:
        # That was for those who are there already. SQLite makes the table anew, without the checks that follow.
        people.alter_column(
            "language", existing_type=sa.String(8), existing_nullable=False, server_default=None
        )
    _allow(("learner", "instructor", "assistant", "observer", "admin", "ci"))
    op.create_index("ix_people_email", "people", ["email"])
    op.add_column("enrolments", sa.Column("section", sa.String(120), nullable=True))
    op.add_column("enrolments", sa.Column("external_id", sa.String(120), nullable=True))
    op.create_table(
        "identities",
        sa.Column("id", Int, nullable=False),
        sa.Column("person_id", Int, nullable=False),
        sa.Column("issuer", sa.String(255), nullable=False),
        sa.Column("subject", sa.String(255), nullable=False),
        sa.Column("created_at", Time, nullable=False),
        sa.Column("used_at", Time, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_identities"),
        sa.UniqueConstraint("issuer", "subject", name="uq_identities_issuer_subject"),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.id"], name="fk_identities_person_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_identities_person_id", "identities", ["person_id"])


def downgrade() -> None:
    """Drop them; assistants and observers take no part any more: as learners they would see what is not theirs."""
    op.drop_table("identities")
    op.drop_index("ix_people_email", "people")
    for table, column in (
        ("people", "language"),
        ("people", "email"),
        ("enrolments", "section"),
        ("enrolments", "external_id"),
    ):
        op.drop_column(table, column)
    for table in ("enrolments", "invitations"):
        op.execute(f"DELETE FROM {table} WHERE role IN ('assistant', 'observer')")
    op.execute("UPDATE people SET role = 'learner' WHERE role IN ('assistant', 'observer')")
    _allow(_ROLES)


def _allow(roles: tuple[str, ...]) -> None:
    for name in _TABLES:
        constraint = op.f(f"ck_{name}_role")
        with op.batch_alter_table(name) as table:
            if op.get_bind().dialect.name != "sqlite":
                # There the table is made anew, without any.
                table.drop_constraint(constraint, type_="check")
            table.create_check_constraint(constraint, f"role IN ({', '.join(repr(one) for one in roles)})")
