"""A platform's list of people as it is taken over into a course: who is new comes in, who is gone is marked.

Nobody's part ends by it: that is for the course's staff to say. A list is taken over whole or, where it could not be
read, not at all; once more changes nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection, insert, select, update

from grader.store.clock import database_now, now
from grader.store.database import Store
from grader.store.delivery.deliveries import enqueue
from grader.store.events import audit
from grader.store.lti.lti_contexts import PlatformContext, enrolled_role, note_member
from grader.store.lti.lti_platforms import PlatformTerms
from grader.store.people.care import note_memberships
from grader.store.people.identities import VouchedIdentity
from grader.store.people.sign_ons import SignedOn, SignOnTerms, account_of
from grader.store.tables import EnrolmentRow, LtiContextRow, LtiMemberRow
from grader.store.tables.person import Role

CHANNEL = "lti_roster"
EVERY_S = 86400.0
_AT_ONCE = 25


@dataclass(frozen=True, slots=True)
class RosterMember:
    """Somebody on a platform's list.

    Attributes:
        role: None: a mentor, who is not let in by that.
    """

    subject: str
    name: str
    address: str | None
    role: Role | None
    external_id: str | None


def identity_of(platform: PlatformTerms, subject: str, name: str, address: str | None) -> VouchedIdentity:
    """Somebody as a platform vouches for them; their address only where its administrator trusts its addresses."""
    trusted = address.strip().casefold()[:254] if address and platform.link_by_address else ""
    # What they are called in it must not stand in a login: of some platforms it is a number, of others a secret.
    spare = f"learner-{hashlib.sha256(subject.encode()).hexdigest()[:8]}"
    login = trusted.partition("@")[0] or "-".join(name.split()) or spare
    return VouchedIdentity(platform.issuer, subject, name or spare, login, trusted or None)


def sign_on_terms(platform: PlatformTerms) -> SignOnTerms:
    """What a platform's word opens: an account of one's own, and (if it is trusted so far) the one of one's address."""
    return SignOnTerms(link_by_address=platform.link_by_address, open_accounts=True)


def take_roster(
    store: Store, found: PlatformContext, platform: PlatformTerms, members: Sequence[RosterMember]
) -> int:
    """Take a list over, and return how many people came in anew."""
    with store.read() as connection:
        began = now(connection)
    num_new = num_left_out = 0
    # In pieces, so that others write meanwhile.
    for start in range(0, len(members), _AT_ONCE):
        with store.write() as connection:
            for one in members[start : start + _AT_ONCE]:
                new = _take(connection, found, platform, one)
                num_new += bool(new)
                num_left_out += new is None
    listed = {one.subject for one in members}
    with store.write() as connection:
        gone = [
            row.person_id
            for row in connection.execute(
                select(LtiMemberRow.person_id, LtiMemberRow.subject).where(
                    LtiMemberRow.context_id == found.id, LtiMemberRow.left_at.is_(None)
                )
            )
            if row.subject not in listed
        ]
        for person_id in gone:
            connection.execute(
                update(LtiMemberRow)
                .where(LtiMemberRow.context_id == found.id, LtiMemberRow.person_id == person_id)
                .values(left_at=began)
            )
        connection.execute(
            update(LtiContextRow)
            .where(LtiContextRow.id == found.id)
            .values(
                roster_at=database_now(),
                roster_problem=None,
                num_left_out=num_left_out,
            )
        )
        if num_new or gone:
            subject = f"course:{found.course_id}"
            told = {"context": found.facts.title, "new": num_new, "gone": len(gone)}
            audit(connection, subject, "roster_taken", actor_id=None, **told)
    return num_new


def note_roster_problem(store: Store, context_id: int, problem: str) -> None:
    """Say why a list could not be read; what was taken over before stays."""
    with store.write() as connection:
        connection.execute(
            update(LtiContextRow).where(LtiContextRow.id == context_id).values(roster_problem=problem[:500])
        )


def ask_for_roster(store: Store, context_id: int) -> bool:
    """Let a list be read now; False: that is under way, or it was a minute ago."""
    with store.write() as connection:
        minute = now(connection).replace(second=0, microsecond=0)
        return _queue(connection, context_id, f"now:{minute.isoformat()}", 0.0)


def schedule_roster(store: Store, context_id: int) -> None:
    """Let a list be read again in a day, once however often this is said."""
    with store.write() as connection:
        day = (now(connection) + timedelta(seconds=EVERY_S)).date()
        _queue(connection, context_id, day.isoformat(), EVERY_S)


def _queue(connection: Connection, context_id: int, when: str, not_before_s: float) -> bool:
    row = connection.execute(
        select(LtiContextRow.course_id, LtiContextRow.platform_id, LtiContextRow.created_at).where(
            LtiContextRow.id == context_id
        )
    ).one()
    return enqueue(
        connection,
        CHANNEL,
        f"platform:{row.platform_id}",
        {"context_id": context_id, "topic": "roster"},
        # Of ids a database may give one twice.
        key=f"{CHANNEL}:{context_id}:{row.created_at.isoformat()}:{when}",
        course_id=row.course_id,
        not_before_s=not_before_s,
    )


def _take(
    connection: Connection, found: PlatformContext, platform: PlatformTerms, one: RosterMember
) -> bool | None:
    """Let one of them in; whether they are new in the course, None: they are not let in by themselves."""
    terms = SignOnTerms() if one.role is None else sign_on_terms(platform)
    identity = identity_of(platform, one.subject, one.name, one.address)
    account = account_of(connection, identity, terms)
    if not isinstance(account, SignedOn):
        return None
    new = enrolled_role(connection, found.course_id, account.person_id) is None
    if new and one.role is None:
        return None
    if new:
        _enrol(connection, found.course_id, account, one)
    elif one.external_id:
        theirs = (EnrolmentRow.course_id == found.course_id, EnrolmentRow.person_id == account.person_id)
        missing = update(EnrolmentRow).where(*theirs, EnrolmentRow.external_id.is_(None))
        connection.execute(missing.values(external_id=one.external_id))
    note_member(connection, found, account.person_id, one.subject)
    return new


def _enrol(connection: Connection, course_id: int, account: SignedOn, one: RosterMember) -> None:
    connection.execute(
        insert(EnrolmentRow).values(
            course_id=course_id,
            person_id=account.person_id,
            role=one.role,
            external_id=one.external_id,
            created_at=database_now(),
        )
    )
    assert one.role is not None
    # An account that was there before is not the course's, only because it stands on a list.
    note_memberships(connection, course_id, [account.person_id], role=one.role, entrusted=account.made)
    told = {"person_id": account.person_id, "role": one.role}
    audit(connection, f"course:{course_id}", "enrolled", actor_id=None, **told)
