"""Deleting an archived course with all that was handed in for it, and the files that nobody else has.

Certificates stay, and say what they said: whoever earned one keeps it. The course's title stays for them, and the audit
for who asks later.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, select, update

from grader.errors import UsageError
from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.events import audit
from grader.store.files import FileStore
from grader.store.people.erasure import drop_files, drop_sources
from grader.store.tables import (
    ArtifactRow,
    AttemptRow,
    Base,
    CertificateRow,
    CourseRow,
    CourseTaskRow,
    EnrolmentRow,
    SubmissionRow,
)


@dataclass(frozen=True, slots=True)
class CourseContents:
    """What goes with a course, and what stays of it.

    Attributes:
        num_people: who take part; num_tasks, num_submissions, num_attempts: what goes with its tasks.
        num_bytes: of the files of its attempts, those that others have, too, among them.
        num_certificates: that stay.
    """

    num_people: int
    num_tasks: int
    num_submissions: int
    num_attempts: int
    num_bytes: int
    num_certificates: int


def course_contents(store: Store, course_id: int) -> CourseContents:
    """What deleting a course would take."""
    tasks = select(CourseTaskRow.id).where(CourseTaskRow.course_id == course_id)
    attempts = select(AttemptRow.id).where(AttemptRow.course_task_id.in_(tasks))
    files = (
        select(ArtifactRow.digest, ArtifactRow.size)
        .where(ArtifactRow.attempt_id.in_(attempts))
        .distinct()
        .subquery()
    )
    counted = (
        select(func.count()).where(EnrolmentRow.course_id == course_id),
        select(func.count()).where(CourseTaskRow.course_id == course_id),
        select(func.count()).where(SubmissionRow.course_task_id.in_(tasks)),
        select(func.count()).where(AttemptRow.course_task_id.in_(tasks)),
        select(func.coalesce(func.sum(files.c.size), 0)),
        select(func.count()).where(CertificateRow.course_id == course_id),
    )
    with store.read() as connection:
        return CourseContents(*(int(connection.execute(one).scalar_one()) for one in counted))


def delete_course(store: Store, files: FileStore, course_id: int, *, actor_id: int | None) -> CourseContents:
    """Delete a course that is archived; says what went.

    Raises:
        UsageError: there is no such course, or it is not archived.
    """
    contents = course_contents(store, course_id)
    with store.write() as connection:
        found = connection.execute(
            select(CourseRow.name, CourseRow.archived_at)
            .where(CourseRow.id == course_id, CourseRow.deleted_at.is_(None))
            .with_for_update(key_share=True)
        ).one_or_none()
        if found is None or found.archived_at is None:
            raise UsageError("only a course that is archived can be deleted: archive it first")
        digests, blobs = _files_of(connection, course_id)
        _delete_all_of(connection, course_id)
        connection.execute(
            update(CourseRow)
            .where(CourseRow.id == course_id)
            .values(deleted_at=database_now(), name=f"deleted-{course_id}", about=None, source=None)
        )
        audit(connection, f"course:{course_id}", "course_deleted", actor_id=actor_id, name=found.name)
    drop_sources(store, digests)
    drop_files(store, files, blobs)
    return contents


def _files_of(connection: Connection, course_id: int) -> tuple[list[str], list[str]]:
    """Digests of what was handed in, and of what attempts left."""
    tasks = select(CourseTaskRow.id).where(CourseTaskRow.course_id == course_id)
    # Attempts before all else, the order in which everybody takes these locks.
    attempts = select(AttemptRow.id).where(AttemptRow.course_task_id.in_(tasks))
    connection.execute(attempts.order_by(AttemptRow.id).with_for_update()).all()
    digests = select(SubmissionRow.digest).where(SubmissionRow.course_task_id.in_(tasks)).distinct()
    blobs = select(ArtifactRow.digest).where(ArtifactRow.attempt_id.in_(attempts)).distinct()
    return sorted(connection.execute(digests).scalars()), sorted(connection.execute(blobs).scalars())


def _delete_all_of(connection: Connection, course_id: int) -> None:
    """Everything that belongs to the course, whichever table it is in, but its certificates."""
    for table in reversed(Base.metadata.sorted_tables):
        if table is CertificateRow.__table__:
            continue
        for key in table.foreign_keys:
            if key.column.table is CourseRow.__table__:
                theirs = key.parent == course_id
                if key.ondelete == "CASCADE":
                    connection.execute(delete(table).where(theirs))
                else:
                    connection.execute(update(table).where(theirs).values({key.parent.name: None}))
