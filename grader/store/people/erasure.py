"""Erasing what is kept of a person, and whatever files nobody refers to any more.

Grades, submissions and events of others stay; what the person did to others' work stays without their name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, delete, select
from sqlalchemy.exc import IntegrityError

from grader.errors import UsageError
from grader.store.database import Store
from grader.store.events import audit
from grader.store.files import FileStore
from grader.store.grading.certificates import REVOKED
from grader.store.grading.credits import hand_over
from grader.store.tables import (
    ArtifactRow,
    AttemptRow,
    BouncedAddressRow,
    CertificateRow,
    DeliveryRow,
    EventRow,
    PersonRow,
    SourceRow,
    SubmissionRow,
)

_MOST_AT_ONCE = 5000


@dataclass(frozen=True, slots=True)
class Erased:
    """What is gone."""

    num_submissions: int
    num_attempts: int
    num_files: int


def erase(store: Store, files: FileStore, person_id: int, *, actor_id: int | None) -> Erased:
    """Erase a person: account, submissions, attempts, grades, certificates, and files that nobody else's attempt has.

    A worker that judges an attempt of theirs just now is refused when it brings the grade. What is left is one audit
    event without a name.

    Raises:
        UsageError: there is no such person.
    """
    with store.write() as connection:
        hand_over(connection, person_id)
        # Attempts before the person, the order in which everybody else takes these locks.
        attempts = list(
            connection.execute(
                select(AttemptRow.id)
                .where(AttemptRow.person_id == person_id)
                .order_by(AttemptRow.id)
                .with_for_update()
            ).scalars()
        )
        mine = select(AttemptRow.id).where(AttemptRow.person_id == person_id)
        digests = set(
            connection.execute(
                select(SubmissionRow.digest).where(SubmissionRow.person_id == person_id)
            ).scalars()
        )
        blobs = set(
            connection.execute(select(ArtifactRow.digest).where(ArtifactRow.attempt_id.in_(mine))).scalars()
        )
        _forget_revocations(connection, person_id)
        submissions = connection.execute(
            delete(SubmissionRow).where(SubmissionRow.person_id == person_id)
        ).rowcount
        # All else that is theirs goes with the account. Their remarks on others' work stay, without their name.
        connection.execute(
            delete(EventRow).where(EventRow.subject == f"person:{person_id}", EventRow.attempt_id.is_(None))
        )
        _forget_mail(connection, person_id)
        if not connection.execute(delete(PersonRow).where(PersonRow.id == person_id)).rowcount:
            raise UsageError(f"there is no person {person_id}")
        audit(
            connection, f"person:{person_id}", "erased", actor_id=actor_id if actor_id != person_id else None
        )
    drop_sources(store, sorted(digests))
    return Erased(submissions, len(attempts), drop_files(store, files, sorted(blobs)))


def drop_files(store: Store, files: FileStore, digests: list[str]) -> int:
    """Remove those of these files that no attempt refers to any more; returns how many went."""
    used: set[str] = set()
    with store.read() as connection:
        for start in range(0, len(digests), _MOST_AT_ONCE):
            asked = digests[start : start + _MOST_AT_ONCE]
            there = select(ArtifactRow.digest).where(ArtifactRow.digest.in_(asked)).distinct()
            used.update(connection.execute(there).scalars())
    gone = [digest for digest in digests if digest not in used]
    return sum(files.remove(digest) for digest in gone)


def drop_sources(store: Store, digests: Sequence[str]) -> None:
    """Remove those of these submissions' files that nobody has handed in any more."""
    for digest in digests:
        _drop_source(store, digest)


def _forget_mail(connection: Connection, person_id: int) -> None:
    """Remove what was mailed to them or is to be, and what their address answered."""
    address = connection.execute(
        select(PersonRow.email).where(PersonRow.id == person_id)
    ).scalar_one_or_none()
    receivers = [f"person:{person_id}", *([] if address is None else [f"address:{address}"])]
    connection.execute(delete(DeliveryRow).where(DeliveryRow.receiver.in_(receivers)))
    connection.execute(delete(BouncedAddressRow).where(BouncedAddressRow.address == address))


def _forget_revocations(connection: Connection, person_id: int) -> None:
    """Remove why their certificates were revoked: the reasons are about them, in somebody's own words."""
    courses = connection.execute(
        select(CertificateRow.course_id).where(CertificateRow.person_id == person_id)
    ).scalars()
    said = connection.execute(
        select(EventRow.id, EventRow.data).where(
            EventRow.subject.in_([f"course:{one}" for one in courses]), EventRow.kind == REVOKED
        )
    ).all()
    theirs = [row.id for row in said if row.data["person_id"] == person_id]
    connection.execute(delete(EventRow).where(EventRow.id.in_(theirs)))


def _drop_source(store: Store, digest: str) -> None:
    used = select(SubmissionRow.id).where(SubmissionRow.digest == digest)
    try:
        with store.write() as connection:
            connection.execute(delete(SourceRow).where(SourceRow.digest == digest, ~used.exists()))
    except IntegrityError:
        # Somebody handed the very same files in just now: they are theirs.
        return
