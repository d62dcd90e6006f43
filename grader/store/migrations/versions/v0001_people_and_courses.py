"""People, courses and their tasks: everything that is there before anybody hands something in."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

Int = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Time = sa.DateTime(timezone=True)
ROLES = (
    "learner",
    "instructor",
    "admin",
    "ci",
)
SCOPES = (
    "read",
    "submit",
    "verify",
    "manage",
)
LATEPOLICYS = (
    "closed",
    "accepted",
    "reduced",
)


def one_of(name: str, *values: str) -> sa.Enum:
    """A column that takes these values and nothing else."""
    return sa.Enum(*values, name=name, native_enum=False, create_constraint=True, length=16)


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "courses",
        sa.Column("id", Int, nullable=False),
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("title", sa.String(200), nullable=False),
        sa.Column("created_at", Time, nullable=False),
        sa.Column("closed_at", Time, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_courses")),
        sa.UniqueConstraint("name", name=op.f("uq_courses_name")),
    )
    op.create_table(
        "people",
        sa.Column("id", Int, nullable=False),
        sa.Column("login", sa.String(120), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("role", one_of("role", *ROLES), nullable=False),
        sa.Column("password_hash", sa.Text(), nullable=True),
        sa.Column("must_change", sa.Boolean(), nullable=False),
        sa.Column("session_epoch", Int, nullable=False),
        sa.Column("created_at", Time, nullable=False),
        sa.Column("disabled_at", Time, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_people")),
        sa.UniqueConstraint("login", name=op.f("uq_people_login")),
    )
    op.create_table(
        "api_tokens",
        sa.Column("id", Int, nullable=False),
        sa.Column("person_id", Int, nullable=False),
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("prefix", sa.String(16), nullable=False),
        sa.Column("scope", one_of("scope", *SCOPES), nullable=False),
        sa.Column("created_at", Time, nullable=False),
        sa.Column("expires_at", Time, nullable=True),
        sa.Column("revoked_at", Time, nullable=True),
        sa.Column("used_at", Time, nullable=True),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.id"], name=op.f("fk_api_tokens_person_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_tokens")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_api_tokens_token_hash")),
    )
    op.create_index(op.f("ix_api_tokens_person_id"), "api_tokens", ["person_id"], unique=False)
    op.create_table(
        "certificates",
        sa.Column("id", Int, nullable=False),
        sa.Column("public_id", sa.String(40), nullable=False),
        sa.Column("course_id", Int, nullable=False),
        sa.Column("person_id", Int, nullable=False),
        sa.Column("issued_at", Time, nullable=False),
        sa.Column("revoked_at", Time, nullable=True),
        sa.ForeignKeyConstraint(
            ["course_id"], ["courses.id"], name=op.f("fk_certificates_course_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.id"], name=op.f("fk_certificates_person_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_certificates")),
        sa.UniqueConstraint("course_id", "person_id", name=op.f("uq_certificates_course_id_person_id")),
        sa.UniqueConstraint("public_id", name=op.f("uq_certificates_public_id")),
    )
    op.create_index(op.f("ix_certificates_person_id"), "certificates", ["person_id"], unique=False)
    op.create_table(
        "course_tasks",
        sa.Column("id", Int, nullable=False),
        sa.Column("course_id", Int, nullable=False),
        sa.Column("task", sa.String(120), nullable=False),
        sa.Column("version", sa.String(length=64), nullable=False),
        sa.Column("title", sa.String(200), nullable=False),
        sa.Column("profile", sa.String(40), nullable=False),
        sa.Column("need", sa.String(16), nullable=False),
        sa.Column("position", Int, nullable=False),
        sa.Column("weight", sa.Double(), nullable=False),
        sa.Column("required", sa.Boolean(), nullable=False),
        sa.Column("opens_at", Time, nullable=True),
        sa.Column("due_at", Time, nullable=True),
        sa.Column("late_policy", one_of("latepolicy", *LATEPOLICYS), nullable=False),
        sa.Column("late_loss", sa.Double(), nullable=False),
        sa.Column("late_days", Int, nullable=True),
        sa.Column("max_per_day", Int, nullable=True),
        sa.Column("max_total", Int, nullable=True),
        sa.Column("max_concurrent", Int, nullable=True),
        sa.Column("hidden_until_due", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["course_id"], ["courses.id"], name=op.f("fk_course_tasks_course_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_course_tasks")),
        sa.UniqueConstraint(
            "course_id", "task", "profile", name=op.f("uq_course_tasks_course_id_task_profile")
        ),
    )
    op.create_table(
        "enrolments",
        sa.Column("id", Int, nullable=False),
        sa.Column("course_id", Int, nullable=False),
        sa.Column("person_id", Int, nullable=False),
        sa.Column("role", one_of("role", *ROLES), nullable=False),
        sa.Column("created_at", Time, nullable=False),
        sa.ForeignKeyConstraint(
            ["course_id"], ["courses.id"], name=op.f("fk_enrolments_course_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.id"], name=op.f("fk_enrolments_person_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_enrolments")),
        sa.UniqueConstraint("course_id", "person_id", name=op.f("uq_enrolments_course_id_person_id")),
    )
    op.create_index(op.f("ix_enrolments_person_id"), "enrolments", ["person_id"], unique=False)
    op.create_table(
        "invitations",
        sa.Column("id", Int, nullable=False),
        sa.Column("course_id", Int, nullable=False),
        sa.Column("code", sa.String(40), nullable=False),
        sa.Column("role", one_of("role", *ROLES), nullable=False),
        sa.Column("expires_at", Time, nullable=True),
        sa.Column("max_uses", Int, nullable=True),
        sa.Column("num_uses", Int, nullable=False),
        sa.Column("revoked_at", Time, nullable=True),
        sa.ForeignKeyConstraint(
            ["course_id"], ["courses.id"], name=op.f("fk_invitations_course_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_invitations")),
        sa.UniqueConstraint("code", name=op.f("uq_invitations_code")),
    )
    op.create_index(op.f("ix_invitations_course_id"), "invitations", ["course_id"], unique=False)
    op.create_table(
        "extensions",
        sa.Column("id", Int, nullable=False),
        sa.Column("enrolment_id", Int, nullable=False),
        sa.Column("course_task_id", Int, nullable=False),
        sa.Column("due_at", Time, nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["course_task_id"],
            ["course_tasks.id"],
            name=op.f("fk_extensions_course_task_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["enrolment_id"], ["enrolments.id"], name=op.f("fk_extensions_enrolment_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_extensions")),
        sa.UniqueConstraint(
            "enrolment_id", "course_task_id", name=op.f("uq_extensions_enrolment_id_course_task_id")
        ),
    )
    op.create_index(op.f("ix_extensions_course_task_id"), "extensions", ["course_task_id"], unique=False)


def downgrade() -> None:
    """Drop them with all they hold."""
    for table in (
        "extensions",
        "invitations",
        "enrolments",
        "course_tasks",
        "certificates",
        "api_tokens",
        "people",
        "courses",
    ):
        op.drop_table(table)
