"""Standings: what the gradebook shows, worked out once from the grades that are there."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

Int = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Time = sa.DateTime(timezone=True)
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
        "standings",
        sa.Column("course_task_id", Int, nullable=False),
        sa.Column("person_id", Int, nullable=False),
        sa.Column("attempt_id", Int, nullable=False),
        sa.Column("points", sa.Double(), nullable=False),
        sa.Column("max_points", sa.Double(), nullable=False),
        sa.Column("verdict", one_of("verdict", *VERDICTS), nullable=False),
        sa.Column("late_days", Int, nullable=False),
        sa.Column("overridden", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["attempt_id"], ["attempts.id"], name=op.f("fk_standings_attempt_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["course_task_id"],
            ["course_tasks.id"],
            name=op.f("fk_standings_course_task_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["person_id"], ["people.id"], name=op.f("fk_standings_person_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("course_task_id", "person_id", name=op.f("pk_standings")),
    )
    op.create_index("ix_standings_attempt_id", "standings", ["attempt_id"], unique=False)
    op.create_index("ix_standings_of_person", "standings", ["person_id"], unique=False)
    fill()


def downgrade() -> None:
    """Drop them with all they hold."""
    for table in ("standings",):
        op.drop_table(table)


def fill() -> None:
    """Write a standing for every learner and task that has a grade."""
    connection = op.get_bind()
    rows = connection.execute(sa.text(IN_FORCE).columns(submitted_at=Time, due_at=Time)).mappings()
    best: dict[tuple[int, int], dict[str, Any]] = {}
    for row in rows:
        late = 0
        if row["due_at"] is not None and row["submitted_at"] > row["due_at"]:
            late = math.ceil((row["submitted_at"] - row["due_at"]) / timedelta(days=1))
        share = max(0.0, 1.0 - row["late_loss"] * late) if row["late_policy"] == "reduced" else 1.0
        overridden = row["given_verdict"] is not None
        standing = {
            "course_task_id": row["course_task_id"],
            "person_id": row["person_id"],
            "attempt_id": row["id"],
            "points": row["given_points"] if overridden else row["points"] * share,
            "max_points": row["max_points"],
            "verdict": row["given_verdict"] if overridden else row["verdict"],
            "late_days": late,
            "overridden": overridden,
        }
        cell = (row["course_task_id"], row["person_id"])
        if cell not in best or rank(standing) > rank(best[cell]):
            best[cell] = standing
    if best:
        connection.execute(STANDINGS.insert(), list(best.values()))


def rank(standing: dict[str, Any]) -> tuple[bool, float, int]:
    """Accepted before not, then points, then the earlier attempt."""
    return standing["verdict"] == "accepted", standing["points"], -standing["attempt_id"]


# Of a submission's judgements that count the newest, with the newest override that was not withdrawn.
IN_FORCE = """
SELECT a.id, a.person_id, a.course_task_id, s.submitted_at, COALESCE(x.due_at, t.due_at) AS due_at,
       t.late_policy, t.late_loss, g.verdict, g.points, g.max_points,
       o.verdict AS given_verdict, o.points AS given_points
FROM attempts a
JOIN grades g ON g.attempt_id = a.id
JOIN submissions s ON s.id = a.submission_id
JOIN course_tasks t ON t.id = a.course_task_id
LEFT JOIN enrolments e ON e.person_id = a.person_id AND e.course_id = t.course_id
LEFT JOIN extensions x ON x.enrolment_id = e.id AND x.course_task_id = t.id
LEFT JOIN overrides o ON o.id = (
    SELECT MAX(p.id) FROM overrides p JOIN attempts b ON b.id = p.attempt_id
    WHERE COALESCE(b.regrade_of, b.id) = COALESCE(a.regrade_of, a.id) AND p.withdrawn_at IS NULL)
WHERE a.id = (
    SELECT MAX(c.id) FROM attempts c JOIN grades h ON h.attempt_id = c.id
    WHERE COALESCE(c.regrade_of, c.id) = COALESCE(a.regrade_of, a.id) AND c.counts AND c.state = 'judged')
ORDER BY a.id
"""
STANDINGS = sa.table(
    "standings",
    *(
        sa.column(name)
        for name in (
            "course_task_id",
            "person_id",
            "attempt_id",
            "points",
            "max_points",
            "verdict",
            "late_days",
            "overridden",
        )
    ),
)
