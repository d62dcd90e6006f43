"""Courses that somebody ever took part in, so that care for an account outlives enrolments; sessions that were ended.

Who took part is known from enrolments, from what was handed in, and from the log of who was enrolled and as what.
"""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

Int = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Time = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make both tables, and write down who has taken part in what."""
    op.create_table(
        "ended_sessions",
        sa.Column("nonce_hash", sa.String(64), nullable=False),
        sa.Column("forget_at", Time, nullable=False),
        sa.PrimaryKeyConstraint("nonce_hash", name="pk_ended_sessions"),
    )
    op.create_index("ix_ended_sessions_forget_at", "ended_sessions", ["forget_at"])
    memberships = op.create_table(
        "memberships",
        sa.Column("id", Int, nullable=False),
        sa.Column("person_id", Int, nullable=False),
        sa.Column("course_id", Int, nullable=False),
        sa.Column("taught", sa.Boolean(), nullable=False),
        sa.Column("entrusted", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_memberships"),
        sa.UniqueConstraint("person_id", "course_id", name="uq_memberships_person_id_course_id"),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.id"], name="fk_memberships_person_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["course_id"], ["courses.id"], name="fk_memberships_course_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_memberships_course_id", "memberships", ["course_id"])
    found = _found(op.get_bind())
    if found:
        # How they came is not known any more: whoever looked after them may go on, where nobody else ever had them.
        op.bulk_insert(
            memberships,
            [
                {"person_id": person, "course_id": course, "taught": taught, "entrusted": True}
                for (person, course), taught in sorted(found.items())
            ],
        )


def downgrade() -> None:
    """Drop them; care follows from the present enrolments alone then, and a copied cookie holds for its seven days."""
    op.drop_table("memberships")
    op.drop_table("ended_sessions")


def _found(connection: sa.Connection) -> dict[tuple[int, int], bool]:
    """Person and course → whether they ever taught there."""
    found: dict[tuple[int, int], bool] = {}

    def note(person: int, course: int, role: str) -> None:
        found[person, course] = found.get((person, course), False) or role == "instructor"

    for person, course, role in connection.execute(
        sa.text("SELECT person_id, course_id, role FROM enrolments")
    ):
        note(person, course, role)
    for person, course in connection.execute(
        sa.text(
            "SELECT DISTINCT s.person_id, t.course_id FROM submissions s "
            "JOIN course_tasks t ON t.id = s.course_task_id"
        )
    ):
        note(person, course, "learner")
    people = set(connection.execute(sa.text("SELECT id FROM people")).scalars())
    courses = set(connection.execute(sa.text("SELECT id FROM courses")).scalars())
    for subject, data in connection.execute(
        sa.text("SELECT subject, data FROM events WHERE kind = 'enrolled' AND subject LIKE 'course:%'")
    ):
        said = json.loads(data)
        person, course = said.get("person_id"), int(subject.partition(":")[2])
        if person in people and course in courses:
            note(person, course, said.get("role", "learner"))
    return found
