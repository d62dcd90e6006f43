"""What the tests of delivery share: a small course, and a real mail server that can be made to misbehave."""

from __future__ import annotations

import asyncio
import email
import email.policy
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from grader.delivery.channel import DeliveryContext, find_channels
from grader.delivery.channels import mail
from grader.delivery.runner import ChannelWorker
from grader.settings.schema import Settings
from grader.store.database import Store
from grader.store.delivery.delivery_channels import note_channel
from grader.store.people.mailboxes import set_address
from tests.ports import free_port
from tests.store.campus import Campus

SECRET = "s" * 40
SITE = "https://grader.example.edu"


@dataclass
class Inbox:
    """A mail server's handler: keeps what it takes, and answers as it is told to.

    `rcpt`, `data`: answers instead of "yes"; `hang`: takes a mail and never says so; `vanish`: hangs up in the middle.
    """

    mails: list[EmailMessage] = field(default_factory=list)
    rcpt: dict[str, str] = field(default_factory=dict)
    data: str = ""
    hang: bool = False
    vanish: bool = False
    sessions: set[int] = field(default_factory=set)
    signed_in: list[str] = field(default_factory=list)

    async def handle_RCPT(  # noqa: N802 - the library's own name
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        self.sessions.add(id(session))
        if address in self.rcpt:
            return self.rcpt[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802 - the library's own name
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        if self.vanish:
            assert server.transport is not None
            server.transport.close()
            return "250 OK"
        if self.hang:
            await asyncio.sleep(30)
        if self.data:
            return self.data
        content = envelope.content
        assert isinstance(content, bytes)
        found = email.message_from_bytes(content, policy=email.policy.default)
        assert isinstance(found, EmailMessage)
        self.mails.append(found)
        return "250 taken"

    def authenticate(
        self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: Any
    ) -> AuthResult:
        assert isinstance(data, LoginPassword)
        self.signed_in.append(data.login.decode())
        return AuthResult(success=data.password == b"right")


@dataclass
class MailSite:
    """A campus whose mails go to a server of its own. `anna`, `ben` and `ines` have addresses."""

    campus: Campus
    inbox: Inbox
    port: int
    context: DeliveryContext

    @property
    def store(self) -> Store:
        return self.campus.store

    def deliver(self) -> None:
        """Deliver everything that is due, as a relay's thread does it, one after the other."""
        channel = next(one for one in find_channels() if one.name == "mail")
        worker = ChannelWorker(channel, self.context, 0.01, first=False)
        while worker.turn() == 0.0:
            pass
        self.context.drop()

    def collected(self) -> None:
        """The time is over in which notices wait for others of their kind; then deliver."""
        from sqlalchemy import update

        from grader.store.clock import database_now
        from grader.store.tables import DeliveryRow

        with self.store.write() as connection:
            connection.execute(
                update(DeliveryRow)
                .where(DeliveryRow.due_at < database_now(600.0))
                .values(due_at=database_now(-1.0))
            )
        self.deliver()

    def texts(self) -> list[tuple[str, str, str]]:
        """Of every mail to whom it went, its subject, and its plain text."""
        return [(str(one["To"]), str(one["Subject"]), plain(one)) for one in self.inbox.mails]


def plain(message: EmailMessage) -> str:
    part = message.get_body(("plain",))
    assert part is not None
    return str(part.get_content())


def html(message: EmailMessage) -> str:
    part = message.get_body(("html",))
    assert part is not None
    return str(part.get_content())


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


@pytest.fixture
def mail_port(inbox: Inbox) -> Iterator[int]:
    port = free_port()
    controller = Controller(
        inbox, hostname="127.0.0.1", port=port, authenticator=inbox.authenticate, auth_require_tls=False
    )
    controller.start()
    yield port
    controller.stop()


@pytest.fixture
def mail_site(tmp_path: Path, empty_database: Path, inbox: Inbox, mail_port: int) -> Iterator[MailSite]:
    store = Store(f"sqlite:///{shutil.copy(empty_database, tmp_path / 'grader.db')}")
    campus = Campus(store)
    settings = Settings(
        smtp_url=f"smtp://127.0.0.1:{mail_port}",
        mail_from="Grader <grader@example.edu>",
        public_url=SITE,
        state_dir=tmp_path,
    )
    assert mail.missing(settings) == ""
    for name in ("anna", "ben", "ines"):
        set_address(store, getattr(campus, name), f"{name}@example.org", actor_id=None)
    note_channel(store, "mail", set_up=True, problem=None)
    yield MailSite(campus, inbox, mail_port, DeliveryContext(store, settings, SECRET))
    store.close()
