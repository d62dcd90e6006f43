"""A real mail server that takes, refuses, hangs and goes away: what each does to a mail and to its receiver."""

from __future__ import annotations

from typing import Any

import pytest

from grader.delivery.channels import mail
from grader.delivery.mail import smtp_server
from grader.delivery.mail.smtp_server import parse_smtp_url
from grader.errors import UsageError
from grader.settings.schema import Settings
from grader.store.delivery import deliveries
from grader.store.delivery.delivery_channels import channel_facts
from grader.store.grading import reviews
from grader.store.people.mailboxes import mailbox, set_address
from grader.store.tables.delivery import DeliveryState
from tests.delivery.conftest import MailSite
from tests.ports import free_port
from tests.store.campus import verdict_of


def remark(site: MailSite) -> None:
    attempt = site.campus.judge(site.campus.anna, grade=verdict_of())
    reviews.comment(site.store, attempt, "Well done.", author_id=site.campus.ines)


def logged(site: MailSite) -> deliveries.LoggedDelivery:
    return deliveries.deliveries_of(site.store, site.campus.course, "mail")[0]


def test_a_mail_arrives_whole(mail_site: MailSite) -> None:
    remark(mail_site)
    mail_site.collected()
    (message,) = mail_site.inbox.mails
    assert message["From"] == "Grader <grader@example.edu>"
    assert message["To"] == "Anna <anna@example.org>"
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["Message-ID"].endswith("@example.edu>")
    assert message.get_content_type() == "multipart/alternative"
    assert "250" in (logged(mail_site).answer or "")


def test_a_mailbox_that_is_not_there_is_mailed_no_more_until_its_owner_says_another(
    mail_site: MailSite,
) -> None:
    mail_site.inbox.rcpt["anna@example.org"] = "550 5.1.1 <anna@example.org>: no such user"
    remark(mail_site)
    mail_site.collected()
    assert logged(mail_site).state is DeliveryState.GIVEN_UP
    assert "anna@" not in (logged(mail_site).answer or ""), "logs say no addresses"
    box = mailbox(mail_site.store, mail_site.campus.anna)
    assert box is not None
    assert "no such user" in box.bounced
    remark(mail_site)
    mail_site.collected()
    assert len(deliveries.deliveries_of(mail_site.store, mail_site.campus.course, "mail")) == 1, (
        "not even queued"
    )
    set_address(mail_site.store, mail_site.campus.anna, "a@example.org", actor_id=None)
    remark(mail_site)
    mail_site.collected()
    assert [to for to, _, _ in mail_site.texts()] == ["Anna <a@example.org>"]


@pytest.mark.parametrize(
    "answer",
    [
        "451 4.7.1 greylisted, try again",
        "452 4.2.2 mailbox full",
        "552 5.2.2 mailbox full",
        "554 5.7.1 relay access denied",
    ],
)
def test_what_may_be_mended_is_tried_again_and_blames_no_address(mail_site: MailSite, answer: str) -> None:
    mail_site.inbox.rcpt["anna@example.org"] = answer
    remark(mail_site)
    mail_site.collected()
    assert logged(mail_site).state is DeliveryState.WAITING
    box = mailbox(mail_site.store, mail_site.campus.anna)
    assert box is not None
    assert box.bounced == ""
    mail_site.inbox.rcpt.clear()
    mail_site.collected()
    assert len(mail_site.inbox.mails) == 1


def test_a_mail_that_is_never_taken_is_given_up_and_blames_no_address(mail_site: MailSite) -> None:
    mail_site.inbox.data = "554 5.6.0 this looks like spam"
    remark(mail_site)
    mail_site.collected()
    assert logged(mail_site).state is DeliveryState.GIVEN_UP
    box = mailbox(mail_site.store, mail_site.campus.anna)
    assert box is not None
    assert box.bounced == ""


@pytest.mark.parametrize("fault", ["hang", "vanish"])
def test_a_server_that_hangs_or_goes_away_in_the_middle_loses_nothing(
    mail_site: MailSite, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr(smtp_server, "TIMEOUT_S", 0.5)
    setattr(mail_site.inbox, fault, True)
    remark(mail_site)
    mail_site.collected()
    assert logged(mail_site).state is DeliveryState.WAITING
    setattr(mail_site.inbox, fault, False)
    mail_site.collected()
    assert len(mail_site.inbox.mails) == 1
    assert logged(mail_site).state is DeliveryState.DELIVERED


def test_the_same_mail_sent_twice_says_so(mail_site: MailSite) -> None:
    """Where the answer was lost it is sent again: with the same identity, by which programs show it once."""
    from sqlalchemy import update

    from grader.store.tables import DeliveryRow

    remark(mail_site)
    mail_site.collected()
    with mail_site.store.write() as connection:
        connection.execute(update(DeliveryRow).values(state=DeliveryState.WAITING))
    mail_site.collected()
    first, second = mail_site.inbox.mails
    assert first["Message-ID"] == second["Message-ID"]


def test_a_server_that_is_away_is_waited_for_and_said_to_be(mail_site: MailSite) -> None:
    mail_site.context.settings = Settings(
        smtp_url=f"smtp://127.0.0.1:{free_port()}", mail_from="g@example.edu", public_url="https://x"
    )
    remark(mail_site)
    mail_site.collected()
    assert logged(mail_site).state is DeliveryState.WAITING
    facts = channel_facts(mail_site.store, "mail")
    assert facts is not None
    assert facts.set_up
    assert "does not take us" in (facts.problem or "")


def test_several_mails_take_one_connection(mail_site: MailSite) -> None:
    for person in (mail_site.campus.anna, mail_site.campus.ben):
        attempt = mail_site.campus.judge(person)
        reviews.comment(mail_site.store, attempt, "Fine.", author_id=mail_site.campus.ines)
    mail_site.collected()
    assert len(mail_site.inbox.mails) == 2
    assert len(mail_site.inbox.sessions) == 1


def test_it_signs_in_where_it_is_told_to(mail_site: MailSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smtp_server, "TIMEOUT_S", 2.0)
    url = f"smtp://us%40er@127.0.0.1:{mail_site.port}"
    fields: dict[str, Any] = {"smtp_url": url, "mail_from": "g@example.edu", "public_url": "https://x"}
    mail_site.context.settings = Settings(**fields, smtp_password="wrong")
    remark(mail_site)
    mail_site.collected()
    assert logged(mail_site).state is DeliveryState.WAITING
    mail_site.context.settings = Settings(**fields, smtp_password="right")
    mail_site.collected()
    assert logged(mail_site).state is DeliveryState.DELIVERED
    assert mail_site.inbox.signed_in == ["us@er", "us@er"]


@pytest.mark.parametrize(
    ("url", "password", "why"),
    [
        ("mail.example.edu", "", "looks like"),
        ("http://mail.example.edu", "", "looks like"),
        ("smtp://mail.example.edu:port", "", "looks like"),
        ("smtps://u:p@mail.example.edu", "p", "GRADER_SMTP_PASSWORD"),
        ("smtps://u@mail.example.edu", "", "both or neither"),
        ("smtp://u@mail.example.edu", "p", "in the clear"),
    ],
)
def test_an_address_of_no_server_is_refused_with_what_to_do(url: str, password: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        parse_smtp_url(url, password)


def test_ports_are_those_of_each_kind() -> None:
    assert parse_smtp_url("smtp+starttls://u@h", "p").port == 587
    assert parse_smtp_url("smtps://h", "").port == 465
    assert parse_smtp_url("smtp://h:2525", "").port == 2525


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({}, "GRADER_SMTP_URL"),
        ({"smtp_url": "smtp://h"}, "GRADER_MAIL_FROM"),
        ({"smtp_url": "smtp://h", "mail_from": "a@b\nBcc: x@y"}, "GRADER_MAIL_FROM"),
        ({"smtp_url": "smtp://h", "mail_from": "a@b.c"}, "GRADER_PUBLIC_URL"),
    ],
)
def test_what_is_missing_is_named(settings: dict[str, Any], named: str) -> None:
    assert named in mail.missing(Settings(**settings))
