"""A grade on its way into the store and out of it. The judging was done elsewhere; nothing here changes a grade."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, insert, literal, select, tuple_

from grader.model.finding import Severity
from grader.model.grade import Grade, Verdict
from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.tables import Artifact, Attempt, GradeCode, GradeRecord, SubmissionRow
from grader.store.tables.attempt import AttemptState

# An instructor still looks at it, or the machine failed: neither is an answer that others could be given.
_NOT_SHARED = (Verdict.HELD, Verdict.JUDGE_ERROR)


@dataclass(frozen=True, slots=True)
class Judged:
    """What is kept of a grade.

    Attributes:
        document: the whole grade as JSON of schema 1, written for staff.
        codes: each code that was found and not refuted, with its gravest severity; sorted.
    """

    verdict: Verdict
    points: float
    max_points: float
    document: str
    codes: tuple[tuple[str, Severity], ...]


@dataclass(frozen=True, slots=True)
class StoredGrade:
    """A grade as it was judged."""

    attempt_id: int
    verdict: Verdict
    points: float
    max_points: float
    document: str
    created_at: datetime


def judged(grade: Grade, document: str) -> Judged:
    """What to keep of this grade; `document` is its JSON as `grader.report` writes it for staff."""
    gravest: dict[str, Severity] = {}
    for finding in grade.findings:
        if not finding.refuted:
            known = gravest.get(finding.code, finding.severity)
            gravest[finding.code] = min(known, finding.severity, key=lambda severity: severity.rank)
    return Judged(grade.verdict, grade.points, grade.max_points, document, tuple(sorted(gravest.items())))


def record(
    connection: Connection, attempt_id: int, person_id: int, course_task_id: int, grade: Judged
) -> None:
    """Write the grade of an attempt; a second one for the same attempt is refused by the database."""
    connection.execute(
        insert(GradeRecord).values(
            attempt_id=attempt_id,
            verdict=grade.verdict,
            points=grade.points,
            max_points=grade.max_points,
            document=grade.document,
            created_at=database_now(),
        )
    )
    if grade.codes:
        connection.execute(
            insert(GradeCode),
            [
                {
                    "attempt_id": attempt_id,
                    "code": code,
                    "severity": severity,
                    "course_task_id": course_task_id,
                    "person_id": person_id,
                }
                for code, severity in grade.codes
            ],
        )


def known_answers(
    connection: Connection, wanted: Collection[tuple[str, str, str]]
) -> dict[tuple[str, str, str], int]:
    """The attempt that answered the very same files before, by (digest, task version, profile); unanswered: absent."""
    if not wanted:
        return {}
    # The latest comes last, and stays.
    rows = connection.execute(_KNOWN, {"same": sorted(wanted)})
    return {(row.digest, row.task_version, row.profile): row.id for row in rows}


def copy_answer(
    connection: Connection, origin: int, attempt_id: int, person_id: int, course_task_id: int, name: str
) -> Judged:
    """Give an attempt the grade and files of another; the submission is called by its own name in it."""
    row = connection.execute(_GRADE.where(GradeRecord.attempt_id == origin)).one()
    codes = connection.execute(
        select(GradeCode.code, GradeCode.severity)
        .where(GradeCode.attempt_id == origin)
        .order_by(GradeCode.code)
    )
    copied = Judged(
        row.verdict,
        row.points,
        row.max_points,
        _renamed(row.document, name),
        tuple((code, severity) for code, severity in codes),
    )
    record(connection, attempt_id, person_id, course_task_id, copied)
    connection.execute(
        insert(Artifact).from_select(
            ["attempt_id", "name", "digest", "size"],
            select(literal(attempt_id), Artifact.name, Artifact.digest, Artifact.size).where(
                Artifact.attempt_id == origin
            ),
        )
    )
    return copied


def grade_of(store: Store, attempt_id: int) -> StoredGrade | None:
    """The final grade of an attempt as it was judged, or None."""
    with store.read() as connection:
        row = connection.execute(_GRADE.where(GradeRecord.attempt_id == attempt_id)).one_or_none()
    return None if row is None else StoredGrade(*row)


def submission_name(connection: Connection, submission_id: int) -> str:
    """What a submission is called."""
    return connection.execute(
        select(SubmissionRow.name).where(SubmissionRow.id == submission_id)
    ).scalar_one()


def _renamed(document: str, name: str) -> str:
    # Two learners may hand in the same bytes; neither shall read what the other called their file.
    fields = json.loads(document)
    if fields.get("submission") == name:
        return document
    fields["submission"] = name
    return json.dumps(fields, indent=2, allow_nan=False) + "\n"


_GRADE = select(
    GradeRecord.attempt_id,
    GradeRecord.verdict,
    GradeRecord.points,
    GradeRecord.max_points,
    GradeRecord.document,
    GradeRecord.created_at,
)
_KNOWN = (
    select(Attempt.digest, Attempt.task_version, Attempt.profile, Attempt.id)
    .join(GradeRecord, GradeRecord.attempt_id == Attempt.id)
    .where(
        tuple_(Attempt.digest, Attempt.task_version, Attempt.profile).in_(bindparam("same", expanding=True)),
        Attempt.state == AttemptState.JUDGED,
        Attempt.cached_from.is_(None),
        GradeRecord.verdict.not_in(_NOT_SHARED),
    )
    .order_by(Attempt.id)
)
