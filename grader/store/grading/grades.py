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
from grader.store.tables import (
    ArtifactRow,
    AttemptRow,
    DeletedContentRow,
    GradeCodeRow,
    GradeRow,
    SubmissionRow,
)
from grader.store.tables.attempt import AttemptState

# An instructor still looks at it, or the machine failed: neither is an answer that others could be given.
_NOT_SHARED = (Verdict.HELD, Verdict.JUDGE_ERROR)


@dataclass(frozen=True, slots=True)
class NewGrade:
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


def new_grade(grade: Grade, document: str) -> NewGrade:
    """What to keep of this grade; `document` is its JSON as `grader.report` writes it for staff."""
    gravest: dict[str, Severity] = {}
    for finding in grade.findings:
        if not finding.refuted:
            known = gravest.get(finding.code, finding.severity)
            gravest[finding.code] = min(known, finding.severity, key=lambda severity: severity.rank)
    return NewGrade(grade.verdict, grade.points, grade.max_points, document, tuple(sorted(gravest.items())))


def record_grade(
    connection: Connection, attempt_id: int, person_id: int, course_task_id: int, grade: NewGrade
) -> None:
    """Write the grade of an attempt; a second one for the same attempt is refused by the database."""
    connection.execute(
        insert(GradeRow).values(
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
            insert(GradeCodeRow),
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


def judged_before(
    connection: Connection, wanted: Collection[tuple[str, str, str]]
) -> dict[tuple[str, str, str], int]:
    """The attempt that answered the very same files before, by (digest, task version, profile); unanswered: absent."""
    if not wanted:
        return {}
    # The latest comes last, and stays.
    rows = connection.execute(_KNOWN, {"same": sorted(wanted)})
    return {(row.digest, row.task_version, row.profile): row.id for row in rows}


def copy_grade(
    connection: Connection, origin: int, attempt_id: int, person_id: int, course_task_id: int, name: str
) -> NewGrade:
    """Give an attempt the grade and files of another; the submission is called by its own name in it."""
    row = connection.execute(_GRADE.where(GradeRow.attempt_id == origin)).one()
    codes = connection.execute(
        select(GradeCodeRow.code, GradeCodeRow.severity)
        .where(GradeCodeRow.attempt_id == origin)
        .order_by(GradeCodeRow.code)
    )
    copied = NewGrade(
        row.verdict,
        row.points,
        row.max_points,
        _renamed(row.document, name),
        tuple((code, severity) for code, severity in codes),
    )
    record_grade(connection, attempt_id, person_id, course_task_id, copied)
    connection.execute(
        insert(ArtifactRow).from_select(
            ["attempt_id", "name", "digest", "size"],
            select(literal(attempt_id), ArtifactRow.name, ArtifactRow.digest, ArtifactRow.size).where(
                ArtifactRow.attempt_id == origin
            ),
        )
    )
    return copied


def grade_of(store: Store, attempt_id: int) -> StoredGrade | None:
    """The final grade of an attempt as it was judged, or None."""
    with store.read() as connection:
        row = connection.execute(_GRADE.where(GradeRow.attempt_id == attempt_id)).one_or_none()
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
    GradeRow.attempt_id,
    GradeRow.verdict,
    GradeRow.points,
    GradeRow.max_points,
    GradeRow.document,
    GradeRow.created_at,
)
_KNOWN = (
    select(AttemptRow.digest, AttemptRow.task_version, AttemptRow.profile, AttemptRow.id)
    .join(GradeRow, GradeRow.attempt_id == AttemptRow.id)
    # One whose files were deleted has nothing left to answer with.
    .outerjoin(DeletedContentRow, DeletedContentRow.attempt_id == AttemptRow.id)
    .where(
        DeletedContentRow.attempt_id.is_(None),
        tuple_(AttemptRow.digest, AttemptRow.task_version, AttemptRow.profile).in_(
            bindparam("same", expanding=True)
        ),
        AttemptRow.state == AttemptState.JUDGED,
        AttemptRow.cached_from.is_(None),
        GradeRow.verdict.not_in(_NOT_SHARED),
    )
    .order_by(AttemptRow.id)
)
