"""Lists of people taken over in the background, one-time passwords to be fetched again, invitations of one person."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

Int = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Time = sa.DateTime(timezone=True)
_ADMISSIONS = ("password", "invitation", "sign_on")
_COUNTS = ("num_lines", "num_done", "num_new", "num_invited", "num_enrolled", "num_changed")
_OF_ONE = (("section", 120), ("external_id", 120), ("login", 120), ("name", 200), ("email", 254))


def upgrade() -> None:
    """Add them; invitations that are there are for many."""
    op.create_table(
        "roster_imports",
        sa.Column("id", Int, nullable=False),
        sa.Column("course_id", Int, nullable=False),
        sa.Column("actor_id", Int, nullable=True),
        sa.Column(
            "admission",
            sa.Enum(*_ADMISSIONS, native_enum=False, create_constraint=True, length=16, name="admission"),
            nullable=False,
        ),
        sa.Column("lines", sa.Text(), nullable=False),
        *(sa.Column(name, Int, nullable=False) for name in _COUNTS),
        sa.Column("problems", sa.Text(), nullable=False),
        sa.Column("created_at", Time, nullable=False),
        sa.Column("finished_at", Time, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_roster_imports"),
        sa.ForeignKeyConstraint(
            ["course_id"], ["courses.id"], name="fk_roster_imports_course_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["actor_id"], ["people.id"], name="fk_roster_imports_actor_id", ondelete="SET NULL"
        ),
    )
    op.create_index("ix_roster_imports_course_id", "roster_imports", ["course_id"])
    op.create_table(
        "one_time_passwords",
        sa.Column("person_id", Int, nullable=False),
        sa.Column("course_id", Int, nullable=False),
        sa.Column("sealed", sa.Text(), nullable=False),
        sa.Column("expires_at", Time, nullable=False),
        sa.PrimaryKeyConstraint("person_id", name="pk_one_time_passwords"),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.id"], name="fk_one_time_passwords_person_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["course_id"], ["courses.id"], name="fk_one_time_passwords_course_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_one_time_passwords_course_id", "one_time_passwords", ["course_id"])
    for name, length in _OF_ONE:
        op.add_column("invitations", sa.Column(name, sa.String(length), nullable=True))


def downgrade() -> None:
    """Drop them; a list that is not taken over must be brought again, and whose link is lost gets another code."""
    op.execute("DELETE FROM invitations WHERE login IS NOT NULL")
    for name, _ in _OF_ONE:
        op.drop_column("invitations", name)
    op.drop_table("one_time_passwords")
    op.drop_table("roster_imports")
