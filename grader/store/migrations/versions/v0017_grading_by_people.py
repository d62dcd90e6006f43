"""Points and answers of comments, a library of them, requests for another look, groups, pseudonyms, leaderboards."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

Int = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Time = sa.DateTime(timezone=True)
_HOLDS = sa.text("points IS NOT NULL AND withdrawn_at IS NULL")
_OPEN = sa.text("decided_at IS NULL")


def upgrade() -> None:
    """Add them; no grade changes."""
    op.create_table(
        "grading_rules",
        sa.Column("course_id", Int, nullable=False),
        sa.Column("anonymous", sa.Boolean(), nullable=False),
        sa.Column("pseudonym_key", sa.String(64), nullable=False),
        sa.Column("regrade_days", Int, nullable=True),
        sa.Column("forms_groups", sa.Boolean(), nullable=False),
        sa.Column("group_size", Int, nullable=True),
        sa.Column("forum_url", sa.String(500), nullable=True),
        sa.PrimaryKeyConstraint("course_id", name="pk_grading_rules"),
        _reference("grading_rules", "course_id", "courses"),
    )
    op.create_table(
        "task_grading",
        sa.Column("course_task_id", Int, nullable=False),
        sa.Column("anonymous", sa.Boolean(), nullable=True),
        sa.Column("alone", sa.Boolean(), nullable=False),
        sa.Column("leaderboard", sa.String(80), nullable=True),
        sa.Column("lowest_first", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("course_task_id", name="pk_task_grading"),
        _reference("task_grading", "course_task_id", "course_tasks"),
    )
    op.create_table(
        "leaderboard_names",
        sa.Column("course_id", Int, nullable=False),
        sa.Column("person_id", Int, nullable=False),
        sa.Column("name", sa.String(40), nullable=False),
        sa.PrimaryKeyConstraint("course_id", "person_id", name="pk_leaderboard_names"),
        _reference("leaderboard_names", "course_id", "courses"),
        _reference("leaderboard_names", "person_id", "people"),
    )
    op.create_index("ix_leaderboard_names_person_id", "leaderboard_names", ["person_id"])
    _add_groups()
    _add_comments()
    op.create_table(
        "regrade_requests",
        sa.Column("id", Int, nullable=False),
        sa.Column("attempt_id", Int, nullable=False),
        sa.Column("root_id", Int, nullable=False),
        sa.Column("person_id", Int, nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("created_at", Time, nullable=False),
        sa.Column("decision", sa.String(16), nullable=True),
        sa.Column("reply", sa.Text(), nullable=True),
        sa.Column("actor_id", Int, nullable=True),
        sa.Column("decided_at", Time, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_regrade_requests"),
        sa.CheckConstraint(
            "decision IN ('kept', 'changed')", name=op.f("ck_regrade_requests_requestdecision")
        ),
        _reference("regrade_requests", "attempt_id", "attempts"),
        _reference("regrade_requests", "root_id", "attempts"),
        _reference("regrade_requests", "person_id", "people"),
        _reference("regrade_requests", "actor_id", "people", "SET NULL"),
    )
    for column in ("attempt_id", "root_id", "person_id", "actor_id"):
        op.create_index(f"ix_regrade_requests_{column}", "regrade_requests", [column])
    op.create_index(
        "uq_regrade_requests_open",
        "regrade_requests",
        ["root_id"],
        unique=True,
        sqlite_where=_OPEN,
        postgresql_where=_OPEN,
    )


def downgrade() -> None:
    """Drop them: comments stay without their points, and submissions count for their senders alone."""
    op.drop_table("regrade_requests")
    op.execute("DELETE FROM comments WHERE withdrawn_at IS NOT NULL")
    op.drop_index("ix_comments_points", "comments")
    for column in ("parent_id", "entry_id"):
        op.drop_index(f"ix_comments_{column}", "comments")
    with op.batch_alter_table("comments") as table:
        for column in ("parent_id", "entry_id"):
            table.drop_constraint(f"fk_comments_{column}", type_="foreignkey")
        for column in ("settled_at", "withdrawn_at", "points", "item", "entry_id", "parent_id"):
            table.drop_column(column)
    for name in (
        "comment_entries",
        "credits",
        "group_members",
        "learner_groups",
        "leaderboard_names",
        "task_grading",
        "grading_rules",
    ):
        op.drop_table(name)


def _add_groups() -> None:
    op.create_table(
        "learner_groups",
        sa.Column("id", Int, nullable=False),
        sa.Column("course_id", Int, nullable=False),
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("join_code", sa.String(40), nullable=False),
        sa.Column("created_at", Time, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_learner_groups"),
        sa.UniqueConstraint("course_id", "name", name="uq_learner_groups_course_id_name"),
        sa.UniqueConstraint("join_code", name="uq_learner_groups_join_code"),
        _reference("learner_groups", "course_id", "courses"),
    )
    op.create_table(
        "group_members",
        sa.Column("id", Int, nullable=False),
        sa.Column("group_id", Int, nullable=False),
        sa.Column("course_id", Int, nullable=False),
        sa.Column("person_id", Int, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_group_members"),
        sa.UniqueConstraint("course_id", "person_id", name="uq_group_members_course_id_person_id"),
        _reference("group_members", "group_id", "learner_groups"),
        _reference("group_members", "course_id", "courses"),
        _reference("group_members", "person_id", "people"),
    )
    for column in ("group_id", "person_id"):
        op.create_index(f"ix_group_members_{column}", "group_members", [column])
    op.create_table(
        "credits",
        sa.Column("submission_id", Int, nullable=False),
        sa.Column("person_id", Int, nullable=False),
        sa.PrimaryKeyConstraint("submission_id", "person_id", name="pk_credits"),
        _reference("credits", "submission_id", "submissions"),
        _reference("credits", "person_id", "people"),
    )
    op.create_index("ix_credits_person_id", "credits", ["person_id"])


def _add_comments() -> None:
    op.create_table(
        "comment_entries",
        sa.Column("id", Int, nullable=False),
        sa.Column("course_id", Int, nullable=False),
        sa.Column("title", sa.String(120), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("item", sa.String(80), nullable=True),
        sa.Column("points", sa.Double(), nullable=True),
        sa.Column("retired_at", Time, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_comment_entries"),
        _reference("comment_entries", "course_id", "courses"),
    )
    op.create_index("ix_comment_entries_course_id", "comment_entries", ["course_id"])
    with op.batch_alter_table("comments") as table:
        table.add_column(sa.Column("parent_id", Int, nullable=True))
        table.add_column(sa.Column("entry_id", Int, nullable=True))
        table.add_column(sa.Column("item", sa.String(80), nullable=True))
        table.add_column(sa.Column("points", sa.Double(), nullable=True))
        table.add_column(sa.Column("withdrawn_at", Time, nullable=True))
        table.add_column(sa.Column("settled_at", Time, nullable=True))
        table.create_foreign_key(
            "fk_comments_parent_id", "comments", ["parent_id"], ["id"], ondelete="CASCADE"
        )
        table.create_foreign_key(
            "fk_comments_entry_id", "comment_entries", ["entry_id"], ["id"], ondelete="SET NULL"
        )
    for column in ("parent_id", "entry_id"):
        op.create_index(f"ix_comments_{column}", "comments", [column])
    op.create_index(
        "ix_comments_points",
        "comments",
        ["attempt_id", "points"],
        sqlite_where=_HOLDS,
        postgresql_where=_HOLDS,
    )


def _reference(table: str, column: str, to: str, ondelete: str = "CASCADE") -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{to}.id"], name=f"fk_{table}_{column}", ondelete=ondelete)
