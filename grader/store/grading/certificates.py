"""Certificates: issued when every task that the course requires is accepted, verified by their public id.

Staff may revoke one and let it hold again. Why, stands in the course's audit, and nowhere that strangers read.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import and_, func, insert, select, update

from grader.errors import UsageError
from grader.model.grade import Verdict
from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.events import audit
from grader.store.tables import CertificateRow, CourseRow, CourseTaskRow, EventRow, PersonRow, StandingRow

REVOKED = "certificate_revoked"
"""Kind of the audit event that says whose certificate was revoked, and why."""


@dataclass(frozen=True, slots=True)
class CertificateFacts:
    """What a certificate says."""

    public_id: str
    person_id: int
    person: str
    course_id: int
    course: str
    issued_at: datetime
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True)
class MissingTasks:
    """No certificate yet: the required tasks that are not accepted, in order; none of them: nothing is required."""

    tasks: tuple[str, ...]


def issue(store: Store, course_id: int, person_id: int) -> CertificateFacts | MissingTasks:
    """The certificate of somebody who has earned it, always the same one, or what is missing.

    A certificate that was issued stays valid whatever is judged later, until it is revoked.
    """
    with store.write() as connection:
        # The person's row is locked: two clicks make one certificate.
        connection.execute(
            select(PersonRow.id).where(PersonRow.id == person_id).with_for_update(key_share=True)
        )
        there = connection.execute(
            _CERTIFIED.where(CertificateRow.course_id == course_id, CertificateRow.person_id == person_id)
        ).one_or_none()
        if there is not None:
            return CertificateFacts(*there)
        rows = connection.execute(
            select(CourseTaskRow.title, StandingRow.verdict)
            .outerjoin(
                StandingRow,
                and_(StandingRow.course_task_id == CourseTaskRow.id, StandingRow.person_id == person_id),
            )
            .where(CourseTaskRow.course_id == course_id, *_REQUIRED)
            .order_by(CourseTaskRow.position)
        ).all()
        missing = tuple(title for title, verdict in rows if verdict is not Verdict.ACCEPTED)
        if missing or not rows:
            return MissingTasks(missing)
        public_id = secrets.token_urlsafe(16)
        connection.execute(
            insert(CertificateRow).values(
                public_id=public_id, course_id=course_id, person_id=person_id, issued_at=database_now()
            )
        )
        audit(connection, f"course:{course_id}", "certified", actor_id=person_id, person_id=person_id)
        return CertificateFacts(
            *connection.execute(_CERTIFIED.where(CertificateRow.public_id == public_id)).one()
        )


def certificate_of(store: Store, course_id: int, person_id: int) -> CertificateFacts | None:
    """The certificate that somebody has of a course, or None; a revoked one says so."""
    with store.read() as connection:
        row = connection.execute(
            _CERTIFIED.where(CertificateRow.course_id == course_id, CertificateRow.person_id == person_id)
        ).one_or_none()
    return None if row is None else CertificateFacts(*row)


def verify(store: Store, public_id: str) -> CertificateFacts | None:
    """What the certificate of that id says, or None; a revoked one says so."""
    with store.read() as connection:
        row = connection.execute(_CERTIFIED.where(CertificateRow.public_id == public_id)).one_or_none()
    return None if row is None else CertificateFacts(*row)


def revoke_certificate(
    store: Store, course_id: int, person_id: int, reason: str, *, actor_id: int | None
) -> bool:
    """Take somebody's certificate of a course back; False: they have none that holds.

    Raises:
        UsageError: no reason is given.
    """
    if not reason.strip():
        raise UsageError(
            "revoking a certificate needs a reason: it stands in the audit, and the learner reads it"
        )
    with store.write() as connection:
        done = connection.execute(
            update(CertificateRow)
            .where(
                CertificateRow.course_id == course_id,
                CertificateRow.person_id == person_id,
                CertificateRow.revoked_at.is_(None),
            )
            .values(revoked_at=database_now())
        ).rowcount
        if done:
            audit(
                connection,
                f"course:{course_id}",
                REVOKED,
                actor_id=actor_id,
                person_id=person_id,
                reason=reason,
            )
        return bool(done)


def reinstate_certificate(store: Store, course_id: int, person_id: int, *, actor_id: int | None) -> bool:
    """Let a revoked certificate hold again, from the day when it was issued; False: they have none that was revoked."""
    with store.write() as connection:
        done = connection.execute(
            update(CertificateRow)
            .where(
                CertificateRow.course_id == course_id,
                CertificateRow.person_id == person_id,
                CertificateRow.revoked_at.is_not(None),
            )
            .values(revoked_at=None)
        ).rowcount
        if done:
            audit(
                connection,
                f"course:{course_id}",
                "certificate_reinstated",
                actor_id=actor_id,
                person_id=person_id,
            )
        return bool(done)


def revocation_reasons(store: Store, course_id: int) -> dict[int, str]:
    """Why certificates of a course were last revoked, by person; of those that hold again, too."""
    with store.read() as connection:
        rows = connection.execute(
            select(EventRow.data)
            .where(EventRow.subject == f"course:{course_id}", EventRow.kind == REVOKED)
            .order_by(EventRow.id)
        ).scalars()
        return {data["person_id"]: data.get("reason", "") for data in rows}


def earned(store: Store, course_id: int) -> tuple[int, ...]:
    """Everybody who has all required tasks of a course accepted, by id: for certificates in one go."""
    required = select(CourseTaskRow.id).where(CourseTaskRow.course_id == course_id, *_REQUIRED)
    with store.read() as connection:
        wanted = list(connection.execute(required).scalars())
        if not wanted:
            return ()
        rows = connection.execute(
            select(StandingRow.person_id)
            .where(StandingRow.course_task_id.in_(wanted), StandingRow.verdict == Verdict.ACCEPTED)
            .group_by(StandingRow.person_id)
            .having(func.count() == len(wanted))
            .order_by(StandingRow.person_id)
        )
        return tuple(rows.scalars())


def certificates_of(store: Store, course_id: int) -> tuple[CertificateFacts, ...]:
    """All certificates of a course by name, those that were revoked among them."""
    with store.read() as connection:
        rows = connection.execute(
            _CERTIFIED.where(CertificateRow.course_id == course_id).order_by(PersonRow.name, PersonRow.id)
        )
        return tuple(CertificateFacts(*row) for row in rows)


_REQUIRED = (
    CourseTaskRow.required,
    CourseTaskRow.withdrawn_at.is_(None),
    CourseTaskRow.draft_since.is_(None),
)
_CERTIFIED = (
    select(
        CertificateRow.public_id,
        PersonRow.id,
        PersonRow.name,
        CourseRow.id,
        CourseRow.title,
        CertificateRow.issued_at,
        CertificateRow.revoked_at,
    )
    .join(PersonRow, PersonRow.id == CertificateRow.person_id)
    .join(CourseRow, CourseRow.id == CertificateRow.course_id)
)
