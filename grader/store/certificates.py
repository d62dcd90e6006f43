"""Certificates: issued when every task that the course requires is accepted, verified by their public id."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import and_, func, insert, select, update

from grader.model.grade import Verdict
from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.events import audit
from grader.store.tables import Certificate, Course, CourseTask, Person, Standing


@dataclass(frozen=True, slots=True)
class Certified:
    """What a certificate says."""

    public_id: str
    person_id: int
    person: str
    course_id: int
    course: str
    issued_at: datetime
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True)
class Missing:
    """No certificate yet: the required tasks that are not accepted, in order; none of them: nothing is required."""

    tasks: tuple[str, ...]


def issue(store: Store, course_id: int, person_id: int) -> Certified | Missing:
    """The certificate of somebody who has earned it, always the same one, or what is missing.

    A certificate that was issued stays valid whatever is judged later, until it is revoked.
    """
    with store.write() as connection:
        # The person's row is locked: two clicks make one certificate.
        connection.execute(select(Person.id).where(Person.id == person_id).with_for_update(key_share=True))
        there = connection.execute(
            _CERTIFIED.where(Certificate.course_id == course_id, Certificate.person_id == person_id)
        ).one_or_none()
        if there is not None:
            return Certified(*there)
        rows = connection.execute(
            select(CourseTask.title, Standing.verdict)
            .outerjoin(
                Standing, and_(Standing.course_task_id == CourseTask.id, Standing.person_id == person_id)
            )
            .where(CourseTask.course_id == course_id, *_REQUIRED)
            .order_by(CourseTask.position)
        ).all()
        missing = tuple(title for title, verdict in rows if verdict is not Verdict.ACCEPTED)
        if missing or not rows:
            return Missing(missing)
        public_id = secrets.token_urlsafe(16)
        connection.execute(
            insert(Certificate).values(
                public_id=public_id, course_id=course_id, person_id=person_id, issued_at=database_now()
            )
        )
        audit(connection, f"course:{course_id}", "certified", actor_id=person_id, person_id=person_id)
        return Certified(*connection.execute(_CERTIFIED.where(Certificate.public_id == public_id)).one())


def certificate_of(store: Store, course_id: int, person_id: int) -> Certified | None:
    """The certificate that somebody has of a course, or None; a revoked one says so."""
    with store.read() as connection:
        row = connection.execute(
            _CERTIFIED.where(Certificate.course_id == course_id, Certificate.person_id == person_id)
        ).one_or_none()
    return None if row is None else Certified(*row)


def verify(store: Store, public_id: str) -> Certified | None:
    """What the certificate of that id says, or None; a revoked one says so."""
    with store.read() as connection:
        row = connection.execute(_CERTIFIED.where(Certificate.public_id == public_id)).one_or_none()
    return None if row is None else Certified(*row)


def revoke_certificate(store: Store, public_id: str, *, actor_id: int | None) -> bool:
    """Take a certificate back; False: there is none that holds."""
    with store.write() as connection:
        row = connection.execute(
            update(Certificate)
            .where(Certificate.public_id == public_id, Certificate.revoked_at.is_(None))
            .values(revoked_at=database_now())
            .returning(Certificate.course_id, Certificate.person_id)
        ).one_or_none()
        if row is not None:
            audit(
                connection,
                f"course:{row.course_id}",
                "certificate_revoked",
                actor_id=actor_id,
                person_id=row.person_id,
            )
        return row is not None


def earned(store: Store, course_id: int) -> tuple[int, ...]:
    """Everybody who has all required tasks of a course accepted, by id: for certificates in one go."""
    required = select(CourseTask.id).where(CourseTask.course_id == course_id, *_REQUIRED)
    with store.read() as connection:
        wanted = list(connection.execute(required).scalars())
        if not wanted:
            return ()
        rows = connection.execute(
            select(Standing.person_id)
            .where(Standing.course_task_id.in_(wanted), Standing.verdict == Verdict.ACCEPTED)
            .group_by(Standing.person_id)
            .having(func.count() == len(wanted))
            .order_by(Standing.person_id)
        )
        return tuple(rows.scalars())


def issued(store: Store, course_id: int) -> tuple[Certified, ...]:
    """All certificates of a course that hold, by name."""
    with store.read() as connection:
        rows = connection.execute(
            _CERTIFIED.where(Certificate.course_id == course_id, Certificate.revoked_at.is_(None)).order_by(
                Person.name, Person.id
            )
        )
        return tuple(Certified(*row) for row in rows)


_REQUIRED = (CourseTask.required, CourseTask.withdrawn_at.is_(None))
_CERTIFIED = (
    select(
        Certificate.public_id,
        Person.id,
        Person.name,
        Course.id,
        Course.title,
        Certificate.issued_at,
        Certificate.revoked_at,
    )
    .join(Person, Person.id == Certificate.person_id)
    .join(Course, Course.id == Certificate.course_id)
)
