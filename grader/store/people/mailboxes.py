"""Where mail reaches people, what of it they want, and which addresses a server has refused. Sends nothing."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from email.headerregistry import Address

from sqlalchemy import Connection, and_, delete, func, select, update

from grader.errors import UsageError
from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.events import audit
from grader.store.tables import BouncedAddressRow, MailChoiceRow, PersonRow
from grader.store.tables.mail import MailKind
from grader.store.upsert import upsert

UNASKED: dict[MailKind, bool] = {kind: kind is not MailKind.VERDICT for kind in MailKind}
"""What is mailed to whoever has chosen nothing."""
_MOST = 254
_ADDRESS = re.compile(
    r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*"
)


@dataclass(frozen=True, slots=True)
class Mailbox:
    """Somebody's mail.

    Attributes:
        address: None: nobody said; bounced: what a mail server said when it refused the address for good; "": none did.
        wanted: of every kind whether it is mailed; language: the code of that to mail them in; "": nobody knows.
    """

    name: str
    address: str | None
    bounced: str
    wanted: Mapping[MailKind, bool]
    language: str


def mail_address(text: str) -> str:
    """An address as it is kept, lower case.

    Raises:
        UsageError: it is none that a mail can be sent to.
    """
    address = text.strip().lower()
    try:
        # By whoever writes the header, too: nothing gets through that could end it early.
        good = len(address) <= _MOST and bool(_ADDRESS.fullmatch(address) and Address(addr_spec=address))
    except ValueError:
        good = False
    if not good:
        raise UsageError("this is no mail address; one looks like name@example.org")
    return address


def mailbox(store: Store, person_id: int) -> Mailbox | None:
    """The mail of an account, or None where there is no such account."""
    with store.read() as connection:
        return read_mailbox(connection, person_id)


def read_mailbox(connection: Connection, person_id: int) -> Mailbox | None:
    """The same, within a transaction of the caller's; of an account that is disabled without its address."""
    row = connection.execute(
        select(
            PersonRow.name,
            PersonRow.email,
            PersonRow.language,
            PersonRow.disabled_at,
            BouncedAddressRow.reason,
        )
        .outerjoin(BouncedAddressRow, BouncedAddressRow.address == PersonRow.email)
        .where(PersonRow.id == person_id)
    ).one_or_none()
    if row is None:
        return None
    chosen = {
        one.kind: one.wanted
        for one in connection.execute(
            select(MailChoiceRow.kind, MailChoiceRow.wanted).where(MailChoiceRow.person_id == person_id)
        )
    }
    address = row.email if row.disabled_at is None else None
    return Mailbox(row.name, address, row.reason or "", {**UNASKED, **chosen}, row.language)


def choose(store: Store, person_id: int, wanted: Mapping[MailKind, bool]) -> None:
    """Keep what somebody wants mailed."""
    with store.write() as connection:
        for kind, yes in wanted.items():
            values = {"person_id": person_id, "kind": kind, "wanted": yes}
            keys = ["person_id", "kind"]
            connection.execute(upsert(connection, MailChoiceRow, keys, values, update=["wanted"]))


def set_language(store: Store, person_id: int, code: str, *, unless_known: bool = False) -> None:
    """Mail somebody in this language from now on; `unless_known`: where nobody has said yet in which."""
    changed = update(PersonRow).where(PersonRow.id == person_id).values(language=code)
    with store.write() as connection:
        connection.execute(changed.where(PersonRow.language == "") if unless_known else changed)


def set_address(store: Store, person_id: int, address: str | None, *, actor_id: int | None) -> None:
    """Mail somebody at this address from now on, or (None) not at all; one that was refused is tried again.

    Raises:
        UsageError: it is no address, or there is no such account.
    """
    address = None if address is None else mail_address(address)
    with store.write() as connection:
        changed = update(PersonRow).where(PersonRow.id == person_id).values(email=address)
        if not connection.execute(changed).rowcount:
            raise UsageError(f"there is no account {person_id}")
        if address is not None:
            connection.execute(delete(BouncedAddressRow).where(BouncedAddressRow.address == address))
        audit(connection, f"person:{person_id}", "mail_address_changed", actor_id=actor_id)


def note_bounced(store: Store, address: str, reason: str) -> None:
    """Send nothing to an address any more: a mail server has refused it for good."""
    values = {"address": address, "reason": reason, "bounced_at": database_now()}
    with store.write() as connection:
        connection.execute(
            upsert(connection, BouncedAddressRow, ["address"], values, update=["reason", "bounced_at"])
        )


def bounced_reason(store: Store, address: str) -> str:
    """What was said when an address was refused for good; "": it was not."""
    row = select(BouncedAddressRow.reason).where(BouncedAddressRow.address == address)
    with store.read() as connection:
        return connection.execute(row).scalar_one_or_none() or ""


def who_wants(connection: Connection, kind: MailKind, person_ids: Collection[int]) -> list[int]:
    """Those of these people whom mail of this kind reaches and who want it, within a transaction of the caller's."""
    chosen = and_(MailChoiceRow.person_id == PersonRow.id, MailChoiceRow.kind == kind)
    rows = (
        select(PersonRow.id)
        .outerjoin(MailChoiceRow, chosen)
        .outerjoin(BouncedAddressRow, BouncedAddressRow.address == PersonRow.email)
        .where(
            PersonRow.id.in_(person_ids),
            PersonRow.email.is_not(None),
            PersonRow.disabled_at.is_(None),
            BouncedAddressRow.address.is_(None),
            func.coalesce(MailChoiceRow.wanted, UNASKED[kind]),
        )
        .order_by(PersonRow.id)
    )
    return list(connection.execute(rows).scalars())
