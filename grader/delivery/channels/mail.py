"""Mail, by a mail server: what people are told of their work, invitations, and addresses to be confirmed."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parseaddr
from typing import Any
from urllib.parse import urlsplit

from grader.delivery.channel import DeliveryContext
from grader.delivery.failures import DeliveryEarlyError
from grader.delivery.mail.daily_summaries import queue_summaries
from grader.delivery.mail.letters import facts_of, hidden_for_s
from grader.delivery.mail.links import AddressToConfirm, confirm_token, off_token
from grader.delivery.mail.message import Envelope, make_message
from grader.delivery.mail.smtp_server import MailboxRefusedError, SmtpServer, parse_smtp_url
from grader.errors import UsageError
from grader.settings.schema import Settings
from grader.store.courses.courses import course
from grader.store.delivery.deliveries import Delivery
from grader.store.delivery.joined_deliveries import join_waiting, release
from grader.store.delivery.mail_requests import CONFIRM, INVITATION
from grader.store.people.mailboxes import Mailbox, bounced_reason, mail_address, mailbox, note_bounced
from grader.store.tables.mail import MailKind
from grader.translation import in_language, languages

_SERVER = "mail server"


def missing(settings: Settings) -> str:
    """Which settings mail lacks here, as a sentence; "": none."""
    if not settings.smtp_url:
        return "Mail is not set up: GRADER_SMTP_URL names no mail server."
    try:
        parse_smtp_url(settings.smtp_url, settings.smtp_password)
    except UsageError as error:
        return f"Mail is not set up: {error}."
    for name, text in (
        ("FROM", settings.mail_from),
        ("REPLY_TO", settings.mail_reply_to or settings.mail_from),
    ):
        if not _is_mailbox(text):
            return f"Mail is not set up: GRADER_MAIL_{name} looks like `Grader <grader@example.edu>`."
    if not 0 <= settings.mail_summary_hour <= 23:
        return "Mail is not set up: GRADER_MAIL_SUMMARY_HOUR is an hour of the day, 0 to 23."
    if settings.mail_language not in languages():
        return f"Mail is not set up: GRADER_MAIL_LANGUAGE is one of: {', '.join(languages())}."
    if urlsplit(settings.public_url).scheme not in ("http", "https"):
        return "Mail is not set up: GRADER_PUBLIC_URL says no address that links could begin with."
    return ""


def regularly(context: DeliveryContext) -> None:
    """Queue what a course's staff is told once a day."""
    queue_summaries(context.store, datetime.now(UTC), hour=context.settings.mail_summary_hour)


def deliver(context: DeliveryContext, delivery: Delivery) -> str:
    """Send one mail, with all that waits to be told to the same person on the same topic."""
    if delivery.topic == INVITATION:
        with in_language(context.settings.mail_language):
            return _invite(context, delivery)
    person_id = int(delivery.receiver.partition(":")[2])
    box = mailbox(context.store, person_id)
    if box is None:
        return "not sent: the account is gone"
    with in_language(box.language or context.settings.mail_language):
        return _tell(context, delivery, person_id, box)


def _tell(context: DeliveryContext, delivery: Delivery, person_id: int, box: Mailbox) -> str:
    if delivery.topic == CONFIRM:
        address = delivery.payload["address"]
        token = confirm_token(context.secret, AddressToConfirm(person_id, address))
        return _send(context, delivery, (address, box.name), {"token": token})
    kind = MailKind(delivery.topic)
    if box.address is None or box.bounced or not box.wanted[kind]:
        return "not sent: nobody is mailed this any more"
    early = hidden_for_s(context.store, delivery, person_id)
    if early:
        raise DeliveryEarlyError("not to be told before the task is due", for_s=early)
    told = _told_now(context, delivery, person_id)
    facts = facts_of(kind, context.store, _site(context), person_id, told)
    if facts is None:
        return "not sent: there is nothing to tell any more"
    off = f"{_site(context)}/api/v1/mail/off/{off_token(context.secret, person_id, kind)}"
    return _send(context, delivery, (box.address, box.name), facts, off)


def _is_mailbox(text: str) -> bool:
    try:
        mail_address(parseaddr(text)[1])
    except UsageError:
        return False
    return text.isprintable()


def _told_now(context: DeliveryContext, delivery: Delivery, person_id: int) -> list[Delivery]:
    told = []
    for one in join_waiting(context.store, delivery):
        later = hidden_for_s(context.store, one, person_id)
        if later:
            release(context.store, delivery, [one.id], for_s=later)
        else:
            told.append(one)
    return told


def _invite(context: DeliveryContext, delivery: Delivery) -> str:
    told = delivery.payload
    found = None if delivery.course_id is None else course(context.store, delivery.course_id)
    address = delivery.receiver.partition(":")[2]
    if found is None or bounced_reason(context.store, address):
        return "not sent: the course is gone, or the address was refused"
    expires = None if told["expires_at"] is None else datetime.fromisoformat(told["expires_at"])
    return _send(context, delivery, (address, ""), {**told, "expires_at": expires, "course": found})


def _send(
    context: DeliveryContext,
    delivery: Delivery,
    receiver: tuple[str, str],
    facts: dict[str, Any],
    off_url: str = "",
) -> str:
    settings, (address, name) = context.settings, receiver
    envelope = Envelope(
        address,
        name,
        settings.mail_from,
        settings.mail_reply_to,
        delivery.id,
        delivery.created_at,
        datetime.now(UTC),
        off_url,
    )
    message = make_message(envelope, delivery.topic, {"site": _site(context), **facts})
    try:
        return _server(context).send(message)
    except MailboxRefusedError as error:
        note_bounced(context.store, address, str(error))
        context.drop()
        raise
    except Exception:
        # Where a conversation broke off, nobody knows what the server would make of the next word.
        context.drop()
        raise


def _server(context: DeliveryContext) -> SmtpServer:
    settings = context.settings

    def connect() -> SmtpServer:
        address = parse_smtp_url(settings.smtp_url, settings.smtp_password)
        return SmtpServer(address, settings.smtp_password, settings.ca_file)

    server: SmtpServer = context.keep(_SERVER, connect)
    if not server.alive:
        context.drop()
        server = context.keep(_SERVER, connect)
    return server


def _site(context: DeliveryContext) -> str:
    return context.settings.public_url.rstrip("/")
