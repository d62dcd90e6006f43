"""All tables of version 0.1.0.

It has the number of the last of the six steps that led here before the first release: a database that went through them
is of this version already.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy import Boolean, Double, ForeignKey, Index, LargeBinary, String, Text, UniqueConstraint

revision = "0006"
down_revision = None
branch_labels = None
depends_on = None

META = sa.MetaData(
    naming_convention={
        "ix": "ix_%(column_0_N_label)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)
Int = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Time = sa.DateTime(timezone=True)
Digest = String(64)
LANES = ("interactive", "regrade")
LATE_POLICIES = ("closed", "accepted", "reduced")
ROLES = ("learner", "instructor", "admin", "ci")
SCOPES = ("read", "submit", "verify", "manage")
SEVERITIES = ("error", "warning", "hint", "review")
STATES = ("queued", "running", "judged", "failed", "cancelled")
VERDICTS = (
    *("judge_error", "held", "timed_out", "deadlocked"),
    *("out_of_memory", "crashed", "rejected", "accepted"),
)


def upgrade() -> None:
    """Make the tables."""
    META.create_all(op.get_bind(), checkfirst=False)


def downgrade() -> None:
    """Drop them with all they hold."""
    META.drop_all(op.get_bind(), checkfirst=False)


def one_of(name: str, values: tuple[str, ...]) -> sa.Enum:
    """A type that takes these values and nothing else, held by a CHECK."""
    return sa.Enum(*values, name=name, native_enum=False, create_constraint=True, length=16)


def refers(target: str, ondelete: str = "CASCADE") -> ForeignKey:
    """What becomes of a row when the row that it refers to goes."""
    return ForeignKey(target, ondelete=ondelete)


def where(condition: str) -> dict[str, Any]:
    """Only rows that meet this are in the index."""
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}


def table(name: str, *parts: sa.schema.SchemaItem) -> None:
    """Describe a table."""
    sa.Table(name, META, *parts)


must = partial(sa.Column[Any], nullable=False)
may = partial(sa.Column[Any], nullable=True)

# Short columns share lines, so that a table is seen at one glance.
# fmt: off
# People, courses and their tasks: everything that is there before anybody hands something in.
table("courses",
    must("id", Int, primary_key=True),
    must("name", String(120), unique=True), must("title", String(200)), must("created_at", Time),
    may("closed_at", Time), may("time_zone", String(64)))

table("people",
    must("id", Int, primary_key=True),
    must("login", String(120), unique=True), must("name", String(200)),
    must("role", one_of("role", ROLES)),
    may("password_hash", Text), must("must_change", Boolean), must("session_epoch", Int),
    must("created_at", Time), may("disabled_at", Time))

table("api_tokens",
    must("id", Int, primary_key=True),
    must("person_id", Int, refers("people.id"), index=True),
    must("name", String(120)), must("token_hash", Digest, unique=True), must("prefix", String(16)),
    must("scope", one_of("scope", SCOPES)),
    must("created_at", Time), may("expires_at", Time), may("revoked_at", Time), may("used_at", Time))

table("certificates",
    must("id", Int, primary_key=True),
    must("public_id", String(40), unique=True),
    must("course_id", Int, refers("courses.id")),
    must("person_id", Int, refers("people.id"), index=True),
    must("issued_at", Time), may("revoked_at", Time),
    UniqueConstraint("course_id", "person_id"))

table("course_tasks",
    must("id", Int, primary_key=True),
    must("course_id", Int, refers("courses.id")),
    must("task", String(120)), must("version", Digest), must("title", String(200)),
    must("profile", String(40)), must("need", String(16)), must("position", Int), must("weight", Double),
    must("required", Boolean), may("opens_at", Time), may("due_at", Time),
    must("late_policy", one_of("latepolicy", LATE_POLICIES)),
    must("late_loss", Double), may("late_days", Int), may("max_per_day", Int), may("max_total", Int),
    may("max_concurrent", Int), must("hidden_until_due", Boolean), may("withdrawn_at", Time),
    UniqueConstraint("course_id", "task", "profile"))

table("enrolments",
    must("id", Int, primary_key=True),
    must("course_id", Int, refers("courses.id")),
    must("person_id", Int, refers("people.id"), index=True),
    must("role", one_of("role", ROLES)),
    must("created_at", Time),
    UniqueConstraint("course_id", "person_id"))

table("invitations",
    must("id", Int, primary_key=True),
    must("course_id", Int, refers("courses.id"), index=True),
    must("code", String(40), unique=True),
    must("role", one_of("role", ROLES)),
    may("expires_at", Time), may("max_uses", Int), must("num_uses", Int), may("revoked_at", Time))

table("extensions",
    must("id", Int, primary_key=True),
    must("enrolment_id", Int, refers("enrolments.id")),
    must("course_task_id", Int, refers("course_tasks.id"), index=True),
    must("due_at", Time), must("reason", Text),
    UniqueConstraint("enrolment_id", "course_task_id"))

# What was handed in, and what came of it.
table("sources",
    must("digest", Digest, primary_key=True),
    must("files", Text), must("size", Int))

table("submissions",
    must("id", Int, primary_key=True),
    must("person_id", Int, refers("people.id")),
    must("course_task_id", Int, refers("course_tasks.id"), index=True),
    must("digest", Digest, ForeignKey("sources.digest")),
    must("name", String(200)), must("submitted_at", Time), may("idempotency_key", String(80)),
    UniqueConstraint("person_id", "idempotency_key"),
    Index("ix_submissions_digest", "digest"))

table("attempts",
    must("id", Int, primary_key=True),
    must("submission_id", Int, refers("submissions.id")),
    must("person_id", Int, refers("people.id")),
    must("course_task_id", Int, refers("course_tasks.id")),
    must("digest", Digest), must("task", String(120)), must("task_version", Digest),
    must("profile", String(40)), must("need", String(16)),
    must("lane", one_of("lane", LANES)),
    must("state", one_of("attemptstate", STATES)),
    must("forced", Boolean), must("queued_at", Time), must("available_at", Time), may("claimed_at", Time),
    may("finished_at", Time), may("phase", String(40)), may("worker", String(120)),
    must("lease_token", Int), may("lease_until", Time), must("tries", Int),
    may("cancel_requested_at", Time),
    may("cached_from", Int, refers("attempts.id", "SET NULL")),
    may("regrade_of", Int, refers("attempts.id")),
    must("counts", Boolean), may("batch", String(40)), may("failure", Text), must("event_seq", Int),
    Index("ix_attempts_of_task", "course_task_id", "person_id", "id"),
    Index("ix_attempts_same", "digest", "task_version", "profile"),
    Index("ix_attempts_cached_from", "cached_from"),
    Index("ix_attempts_measured", "course_task_id", "need", "finished_at"),
    Index("ix_attempts_regrade_of", "regrade_of"),
    Index("ix_attempts_submission_id", "submission_id"),
    Index("ix_attempts_batch", "batch"),
    Index("ix_attempts_of_person", "person_id", "course_task_id", "id"),
    Index("ix_attempts_waiting", "lane", "need", "person_id", "id", **where("state = 'queued'")),
    Index("ix_attempts_leases", "lease_until", **where("state = 'running'")))

table("events",
    must("id", Int, primary_key=True),
    may("attempt_id", Int, refers("attempts.id")),
    must("seq", Int), may("subject", String(80)), must("kind", String(40)), must("at", Time),
    may("actor_id", Int, refers("people.id", "SET NULL"), index=True),
    must("data", Text),
    UniqueConstraint("attempt_id", "seq"),
    Index("ix_events_subject", "subject", "id"))

table("grades",
    must("attempt_id", Int, refers("attempts.id"), primary_key=True),
    must("verdict", one_of("verdict", VERDICTS)),
    must("points", Double), must("max_points", Double), must("document", Text), must("created_at", Time))

table("grade_codes",
    must("attempt_id", Int, refers("attempts.id"), primary_key=True),
    must("code", String(20), primary_key=True),
    must("severity", one_of("severity", SEVERITIES)),
    must("course_task_id", Int, refers("course_tasks.id")),
    must("person_id", Int, refers("people.id"), index=True),
    Index("ix_grade_codes_class", "course_task_id", "code", "person_id", "severity"))

table("outbox",
    must("id", Int, primary_key=True),
    must("topic", String(40)),
    must("attempt_id", Int, refers("attempts.id"), index=True),
    must("created_at", Time), may("taken_until", Time), may("sent_at", Time), must("tries", Int),
    Index("ix_outbox_unsent", "id", **where("sent_at IS NULL")))

# Who works at the queue.
table("workers",
    must("name", String(120), primary_key=True),
    must("needs", Text), must("slots", Int), must("seen_at", Time), must("draining", Boolean),
    may("host", Text))

table("turns",
    must("person_id", Int, refers("people.id"), primary_key=True),
    must("lane", one_of("lane", LANES), primary_key=True),
    must("turn", Int),
    Index("ix_turns_last", "lane", "turn"))

table("gates",
    must("name", String(40), primary_key=True),
    must("since", Time),
    may("actor_id", Int, refers("people.id", "SET NULL"), index=True),
    must("reason", Text))

# What attempts leave, what people add to grades, and what counts.
table("artifacts",
    must("attempt_id", Int, refers("attempts.id"), primary_key=True),
    must("name", String(200), primary_key=True),
    must("digest", Digest, index=True), must("size", Int))

table("blobs",
    must("digest", Digest, primary_key=True),
    must("size", Int), must("data", LargeBinary), must("created_at", Time))

table("overrides",
    must("id", Int, primary_key=True),
    must("attempt_id", Int, refers("attempts.id"), index=True),
    may("actor_id", Int, refers("people.id", "SET NULL"), index=True),
    must("verdict", one_of("verdict", VERDICTS)),
    must("points", Double), must("reason", Text), must("created_at", Time), may("withdrawn_at", Time))

table("comments",
    must("id", Int, primary_key=True),
    must("attempt_id", Int, refers("attempts.id"), index=True),
    may("author_id", Int, refers("people.id", "SET NULL"), index=True),
    may("path", String(300)), may("line", Int), must("text", Text), must("created_at", Time))

table("standings",
    must("course_task_id", Int, refers("course_tasks.id"), primary_key=True),
    must("person_id", Int, refers("people.id"), primary_key=True),
    must("attempt_id", Int, refers("attempts.id")),
    must("points", Double), must("max_points", Double),
    must("verdict", one_of("verdict", VERDICTS)),
    must("late_days", Int), must("overridden", Boolean),
    Index("ix_standings_attempt_id", "attempt_id"),
    Index("ix_standings_of_person", "person_id"))
# fmt: on
