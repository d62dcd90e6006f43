"""Mails that somebody asks for: an invitation to an address, an address to be confirmed. Written when they are sent."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Iterable

from sqlalchemy import Connection, select

from grader.errors import UsageError
from grader.store.database import Store
from grader.store.delivery.deliveries import enqueue
from grader.store.delivery.delivery_channels import is_set_up
from grader.store.delivery.notices import CHANNEL
from grader.store.people.mailboxes import mail_address
from grader.store.people.personal_invitations import personal_invitations
from grader.store.tables import InvitationRow, PersonRow

INVITATION, CONFIRM = "invitation", "confirm"


def request_confirmation(store: Store, person_id: int, address: str) -> str:
    """Mail a link to an address that somebody wants to be reached at; returns the address as it will be kept.

    Raises:
        UsageError: it is no address, or this site has no mail.
    """
    address = mail_address(address)
    with store.write() as connection:
        _need_mail(connection)
        key = f"mail:{CONFIRM}:{person_id}:{secrets.token_hex(8)}"
        told = {"topic": CONFIRM, "address": address}
        enqueue(connection, CHANNEL, f"person:{person_id}", told, key=key)
    return address


def mail_invitations(store: Store, code: str, addresses: Collection[str], *, actor_id: int) -> int:
    """Mail an invitation to these addresses, each once however often it is asked; returns how many are mailed.

    Raises:
        UsageError: one of them is no address, there is no such invitation, or this site has no mail.
    """
    wanted = dict.fromkeys(mail_address(one) for one in addresses)
    with store.write() as connection:
        _need_mail(connection)
        return _mail(connection, code, wanted, actor_id)


def mail_each(store: Store, course_id: int, *, actor_id: int) -> int:
    """Mail to each of whom a list gave an address the link of their own, once; returns how many are mailed.

    Raises:
        UsageError: this site has no mail.
    """
    invited = personal_invitations(store, course_id)
    with store.write() as connection:
        _need_mail(connection)
        mailed = 0
        for one in invited:
            try:
                address = mail_address(one.email or "")
            except UsageError:
                # Nobody wrote one down, or it is none: they are on the file of links.
                continue
            mailed += _mail(connection, one.code, [address], actor_id)
        return mailed


def _mail(connection: Connection, code: str, addresses: Iterable[str], actor_id: int) -> int:
    row = connection.execute(
        select(InvitationRow.course_id, InvitationRow.role, InvitationRow.expires_at).where(
            InvitationRow.code == code, InvitationRow.revoked_at.is_(None)
        )
    ).one_or_none()
    if row is None:
        raise UsageError("there is no such invitation")
    name = connection.execute(select(PersonRow.name).where(PersonRow.id == actor_id)).scalar_one()
    told = {
        "topic": INVITATION,
        "code": code,
        "role": row.role.value,
        "inviter": name,
        "expires_at": None if row.expires_at is None else row.expires_at.isoformat(),
    }
    return sum(
        enqueue(
            connection,
            CHANNEL,
            f"address:{address}",
            told,
            key=f"mail:{INVITATION}:{code}:{hashlib.sha256(address.encode()).hexdigest()}",
            course_id=row.course_id,
        )
        for address in addresses
    )


def _need_mail(connection: Connection) -> None:
    if not is_set_up(connection, CHANNEL):
        raise UsageError("this site sends no mail: whoever runs it sets it up")
