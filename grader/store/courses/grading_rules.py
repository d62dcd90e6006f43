"""How people grade in a course: anonymity, requests for another look, groups, leaderboards, where the course talks.

A course, or a task, of which nothing was set has the defaults. Names stay hidden in `pseudonyms`.
"""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass
from urllib.parse import urlsplit

from sqlalchemy import Connection, bindparam, select

from grader.errors import UsageError
from grader.store.database import Store
from grader.store.events import audit
from grader.store.lti.lti_scores import note_scores
from grader.store.tables import CourseTaskRow, GradingRulesRow, TaskGradingRow
from grader.store.upsert import upsert

MOST_DAYS, MOST_MEMBERS = 365, 50


@dataclass(frozen=True, slots=True)
class GradingRules:
    """Of a course; see `grader.store.tables.grading_rules`."""

    anonymous: bool = False
    regrade_days: int | None = None
    forms_groups: bool = False
    group_size: int | None = None
    forum_url: str | None = None


@dataclass(frozen=True, slots=True)
class TaskGrading:
    """Of a task of a course; see `grader.store.tables.grading_rules`."""

    anonymous: bool | None = None
    alone: bool = False
    leaderboard: str | None = None
    lowest_first: bool = False


def grading_rules(store: Store, course_id: int) -> GradingRules:
    """Those of a course."""
    with store.read() as connection:
        return read_grading_rules(connection, course_id)


def read_grading_rules(connection: Connection, course_id: int) -> GradingRules:
    """The same, within a transaction of the caller's."""
    row = connection.execute(_RULES, {"course": course_id}).one_or_none()
    return GradingRules() if row is None else GradingRules(*row)


def forum_of(store: Store, course_id: int) -> str | None:
    """Where a course talks; None: nowhere."""
    return grading_rules(store, course_id).forum_url


def task_gradings(store: Store, course_id: int) -> dict[int, TaskGrading]:
    """Those of a course's tasks of which something was set, by the task's number in the course."""
    with store.read() as connection:
        rows = connection.execute(
            select(
                TaskGradingRow.course_task_id,
                *(getattr(TaskGradingRow, name) for name in TaskGrading.__dataclass_fields__),
            )
            .join(CourseTaskRow, CourseTaskRow.id == TaskGradingRow.course_task_id)
            .where(CourseTaskRow.course_id == course_id)
        )
        return {row[0]: TaskGrading(*row[1:]) for row in rows}


def set_grading_rules(store: Store, course_id: int, rules: GradingRules, *, actor_id: int) -> None:
    """Set those of a course.

    Showing names again where they were hidden is an audited act of its own kind, and tells platforms the grades.

    Raises:
        UsageError: a number is out of bounds, or the forum is no https address.
    """
    for number, most in ((rules.regrade_days, MOST_DAYS), (rules.group_size, MOST_MEMBERS)):
        if number is not None and not 1 <= number <= most:
            raise UsageError(f"write a number from 1 to {most}")
    if rules.forum_url is not None and not _is_https(rules.forum_url):
        raise UsageError("the forum is an address that begins with https://")
    with store.write() as connection:
        before = read_grading_rules(connection, course_id)
        _keep(connection, course_id, rules)
        changed = {name: value for name, value in asdict(rules).items() if value != getattr(before, name)}
        if "anonymous" in changed:
            kind = "anonymity_began" if changed.pop("anonymous") else "names_revealed"
            audit(connection, f"course:{course_id}", kind, actor_id=actor_id)
            tasks = select(CourseTaskRow.id).where(CourseTaskRow.course_id == course_id)
            for course_task_id in connection.execute(tasks).scalars().all():
                note_scores(connection, course_task_id, again=True)
        if changed:
            audit(connection, f"course:{course_id}", "grading_rules_set", actor_id=actor_id, **changed)


def set_task_grading(
    store: Store, course_id: int, course_task_id: int, grading: TaskGrading, *, actor_id: int
) -> None:
    """Set those of a task of the course; names that were hidden, and are not, are an audited act of its own kind."""
    with store.write() as connection:
        rules = read_grading_rules(connection, course_id)
        row = connection.execute(
            select(TaskGradingRow.anonymous).where(TaskGradingRow.course_task_id == course_task_id)
        ).scalar_one_or_none()
        # The key that its pseudonyms are made with is the course's.
        _keep(connection, course_id, rules)
        values = asdict(grading)
        connection.execute(
            upsert(
                connection,
                TaskGradingRow,
                ["course_task_id"],
                {"course_task_id": course_task_id, **values},
                update=list(values),
            )
        )
        was, now = (rules.anonymous if one is None else one for one in (row, grading.anonymous))
        if was != now:
            audit(
                connection,
                f"course:{course_id}",
                "anonymity_began" if now else "names_revealed",
                actor_id=actor_id,
                course_task_id=course_task_id,
            )
            note_scores(connection, course_task_id, again=True)
        audit(
            connection,
            f"course:{course_id}",
            "task_grading_set",
            actor_id=actor_id,
            course_task_id=course_task_id,
            leaderboard=grading.leaderboard,
            alone=grading.alone,
        )


def _keep(connection: Connection, course_id: int, rules: GradingRules) -> None:
    values = asdict(rules)
    connection.execute(
        upsert(
            connection,
            GradingRulesRow,
            ["course_id"],
            {"course_id": course_id, "pseudonym_key": secrets.token_hex(32), **values},
            update=list(values),
        )
    )


# Made once: every page of a course asks where it talks.
_RULES = select(*(getattr(GradingRulesRow, name) for name in GradingRules.__dataclass_fields__)).where(
    GradingRulesRow.course_id == bindparam("course")
)


def _is_https(address: str) -> bool:
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.scheme == "https" and bool(parts.hostname) and not any(map(str.isspace, address))
