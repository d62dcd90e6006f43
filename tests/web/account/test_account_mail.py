"""One's own mail: another address is proved before it holds, each kind is chosen, and the way out needs no password."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import select

from grader.delivery.mail.links import AddressToConfirm, confirm_token, off_token
from grader.store.delivery.delivery_channels import note_channel
from grader.store.people import mailboxes
from grader.store.people.mailboxes import Mailbox, mailbox, set_address
from grader.store.tables import DeliveryRow
from grader.store.tables.mail import MailKind
from tests.web.conftest import PASSWORD, School


def box(school: School, login: str = "anna") -> Mailbox:
    found = mailbox(school.store, school.people[login])
    assert found is not None
    return found


@pytest.fixture
def mailing(school: School) -> School:
    """The school, where mail is set up."""
    note_channel(school.store, "mail", set_up=True, problem=None)
    return school


def queued(school: School) -> list[dict[str, object]]:
    with school.store.read() as connection:
        return [row.payload for row in connection.execute(select(DeliveryRow.payload))]


def test_another_address_holds_once_its_link_was_followed(mailing: School) -> None:
    anna = mailing.client("anna")
    answer = anna.post("/account/mail/address", data={"address": "Anna@Example.org"})
    assert answer.headers["location"] == "/account#mail"
    assert queued(mailing) == [{"topic": "confirm", "address": "anna@example.org"}]
    assert box(mailing).address is None, "not yet"
    link = "/account/mail/confirm/" + confirm_token(
        mailing.service.secret, AddressToConfirm(mailing.people["anna"], "anna@example.org")
    )
    assert mailing.client().get(link).headers["location"].startswith("/sign-in")
    assert mailing.client("ben").post(link).status_code == 404, "another's link"
    assert "anna@example.org" in anna.get(link).text
    assert box(mailing).address is None, "looking at it changes nothing"
    assert anna.post(link).status_code == 303
    assert box(mailing).address == "anna@example.org"
    assert anna.get("/account/mail/confirm/forged").status_code == 404


def test_what_is_no_address_is_said_to_be_none(mailing: School) -> None:
    anna = mailing.client("anna")
    anna.post("/account/mail/address", data={"address": "nobody\nBcc: x@y"})
    assert queued(mailing) == []
    assert "this is no mail address" in anna.get("/account").text


def test_no_account_floods_others_with_links(mailing: School) -> None:
    anna = mailing.client("anna")
    answers = [
        anna.post("/account/mail/address", data={"address": f"u{number}@example.org"}).status_code
        for number in range(8)
    ]
    assert answers.count(429) == 3
    assert len(queued(mailing)) == 5


def test_an_empty_address_ends_mail(mailing: School) -> None:
    set_address(mailing.store, mailing.people["anna"], "a@example.org", actor_id=None)
    mailing.client("anna").post("/account/mail/address", data={"address": ""})
    assert box(mailing).address is None


def test_each_kind_is_chosen(mailing: School) -> None:
    anna = mailing.client("anna")
    page = anna.get("/account").text
    ticked = set(re.findall(r'name="(\w+)" value="on" checked', page))
    assert ticked == {"held", "decided", "comment", "date", "announcement"}
    assert "courses that I teach" not in page
    assert "courses that I teach" in mailing.client("ines").get("/account").text
    anna.post("/account/mail/choices", data={"verdict": "on", "comment": "on", "summary": "on"})
    assert {kind for kind, yes in box(mailing).wanted.items() if yes} == {"verdict", "comment", "summary"}


def test_the_language_of_mails_is_that_of_the_first_sign_in_until_another_is_chosen(mailing: School) -> None:
    assert box(mailing).language == ""
    assert "not chosen yet" in mailing.client("anna").get("/account").text
    signed_in, german = mailing.client(), {"Accept-Language": "de"}
    page = signed_in.get("/sign-in", headers=german).text
    said = {
        "csrf": re.findall(r'name="csrf" value="([^"]+)"', page)[0],
        "login": "anna",
        "password": PASSWORD,
    }
    answer = signed_in.post("/sign-in", data=said, headers=german)
    assert answer.status_code == 303
    assert box(mailing).language == "de"
    assert re.search(r'<option value="de" selected>', signed_in.get("/account").text)
    anna = mailing.client("anna")
    anna.post("/account/mail/choices", data={"held": "on", "language": "en"})
    assert box(mailing).language == "en"
    anna.post("/account/mail/choices", data={"held": "on", "language": "../x"})
    assert box(mailing).language == "en"


def test_a_refused_address_is_told_on_the_account_until_it_is_confirmed_again(mailing: School) -> None:
    set_address(mailing.store, mailing.people["anna"], "a@example.org", actor_id=None)
    mailboxes.note_bounced(mailing.store, "a@example.org", "550 no such user")
    anna = mailing.client("anna")
    page = anna.get("/account").text
    assert "Mail does not reach a@example.org" in page
    assert "550 no such user" in page
    wanted = AddressToConfirm(mailing.people["anna"], "a@example.org")
    anna.post(f"/account/mail/confirm/{confirm_token(mailing.service.secret, wanted)}")
    assert "does not reach" not in anna.get("/account").text


def test_a_site_without_mail_says_so(school: School) -> None:
    anna = school.client("anna")
    assert "This site sends no mail" in anna.get("/account").text
    anna.post("/account/mail/address", data={"address": "a@example.org"})
    assert "Not changed: this site sends no mail" in anna.get("/account").text
    note_channel(school.store, "mail", set_up=True, problem="the mail server does not take us: refused")
    assert "Mail waits just now" in anna.get("/account").text


def test_mail_programs_end_a_kind_with_one_request_and_people_with_one_button(mailing: School) -> None:
    token = off_token(mailing.service.secret, mailing.people["anna"], MailKind.COMMENT)
    program = mailing.program(None)
    assert program.get(f"/api/v1/mail/off/{token}").headers["location"] == f"/mail/off/{token}"
    assert box(mailing).wanted[MailKind.COMMENT]
    one_click = {"List-Unsubscribe": "One-Click"}
    assert program.post(f"/api/v1/mail/off/{token}", data=one_click).status_code == 204
    assert not box(mailing).wanted[MailKind.COMMENT]
    assert box(mailing).wanted[MailKind.HELD]
    assert program.post("/api/v1/mail/off/forged").status_code == 404

    held = off_token(mailing.service.secret, mailing.people["anna"], MailKind.HELD)
    guest = mailing.client()
    page = guest.get(f"/mail/off/{held}").text
    assert "No more of these mails?" in page
    assert box(mailing).wanted[MailKind.HELD], "programs that look at links end nothing"
    assert guest.post(f"/mail/off/{held}").status_code == 403, "not from our page"
    (csrf,) = re.findall(r'<main.*?name="csrf" value="([^"]+)"', page, re.DOTALL)
    assert "You get no more" in guest.post(f"/mail/off/{held}", data={"csrf": csrf}).text
    assert not box(mailing).wanted[MailKind.HELD]
