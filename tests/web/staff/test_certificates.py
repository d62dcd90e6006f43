"""Revoking a certificate: who may, that it needs a reason, who reads it, and that it can hold again."""

from __future__ import annotations

import pytest

from grader.store.courses import enrolments
from grader.store.events import audit_of
from grader.store.grading import certificates
from tests.web.conftest import Browser, School

REASON = "the script is <b>somebody else's</b>"
SHOWN = "the script is &lt;b&gt;somebody else&#39;s&lt;/b&gt;"


def certified(school: School, login: str = "anna") -> str:
    """Let a learner earn their certificate; returns the address where anybody checks it."""
    for task in school.tasks.values():
        school.judge(login, task=task)
    made = certificates.issue(school.store, school.course, school.people[login])
    assert isinstance(made, certificates.CertificateFacts)
    return f"/certificates/{made.public_id}"


def place(school: School, login: str = "anna") -> str:
    """Address of that learner's certificate for staff."""
    return f"/courses/{school.course}/certificates/{school.people[login]}"


def told(browser: Browser, address: str, data: dict[str, str] | None = None) -> str:
    """Send a form; the text of the page that it leads on to."""
    answer = browser.post(address, data=data or {})
    assert answer.status_code == 303, answer.text
    return browser.get(answer.headers["location"]).text


@pytest.mark.parametrize("login", ["ines", "ada"])
def test_staff_revokes_with_a_reason_and_lets_it_hold_again(school: School, login: str) -> None:
    address, staff = certified(school), school.client(login)
    course = f"/courses/{school.course}"
    assert f"{course}/certificates" in staff.get(f"{course}/exports").text
    assert f'href="{place(school)}">Revoke' in staff.get(f"{course}/certificates").text
    assert f'href="{place(school)}">Revoke' in staff.get(f"{course}/people/{school.people['anna']}").text
    assert "It holds" in staff.get(place(school)).text
    assert "Let it hold again" not in staff.get(place(school)).text

    page = told(staff, f"{place(school)}/revoke", {"reason": REASON})
    assert "The certificate of Anna is revoked" in page
    assert SHOWN in page
    assert "Revoke the certificate" not in page
    listed = staff.get(f"{course}/certificates").text
    assert SHOWN in listed
    assert f'href="{place(school)}">Reinstate' in listed
    assert f'href="{place(school)}">Reinstate' in staff.get(f"{course}/people/{school.people['anna']}").text
    audit = staff.get(f"{course}/audit").text
    assert "certificate revoked" in audit
    assert SHOWN in audit
    (event,) = [one for one in audit_of(school.store, f"course:{school.course}") if "revoked" in one.kind]
    assert event.actor_id == school.people[login]

    assert "The certificate of Anna holds again" in told(staff, f"{place(school)}/reinstate")
    assert "This certificate holds" in school.client().get(address).text
    assert "certificate reinstated" in staff.get(f"{course}/audit").text


def test_the_learner_reads_why_and_everybody_else_only_that(school: School) -> None:
    address, course = certified(school), f"/courses/{school.course}"
    anna, ben, guest = (school.client(login) for login in ("anna", "ben", None))
    told(school.client("ines"), f"{place(school)}/revoke", {"reason": REASON})
    for page in (anna.get(course).text, anna.get(address).text):
        assert "revoked" in page
        assert SHOWN in page
    assert "Print this page" not in anna.get(address).text
    for browser in (guest, ben):
        page = browser.get(address).text
        assert "This certificate was revoked" in page
        assert "This certificate holds" not in page
        assert "somebody else" not in page
    assert "somebody else" not in ben.get(course).text
    told(school.client("ines"), f"{place(school)}/reinstate")
    for page in (anna.get(course).text, anna.get(address).text):
        assert "somebody else" not in page, "it holds again, so nothing is to be explained"


def test_without_a_reason_it_holds(school: School) -> None:
    address, ines = certified(school), school.client("ines")
    for reason in ("", "  \n "):
        answer = ines.post(f"{place(school)}/revoke", data={"reason": reason})
        assert answer.status_code == 422
        assert "A reason is needed." in answer.text
    assert "This certificate holds" in school.client().get(address).text


def test_twice_says_so_and_keeps_the_first_reason(school: School) -> None:
    certified(school)
    ines = school.client("ines")
    told(ines, f"{place(school)}/revoke", {"reason": REASON})
    page = told(ines, f"{place(school)}/revoke", {"reason": "another one"})
    assert "It was revoked already" in page
    assert SHOWN in page
    told(ines, f"{place(school)}/reinstate")
    assert "It was not revoked" in told(ines, f"{place(school)}/reinstate")


def test_nobody_gets_a_revoked_one_anew(school: School) -> None:
    address, ines = certified(school), school.client("ines")
    told(ines, f"{place(school)}/revoke", {"reason": REASON})
    answer = school.client("anna").post(f"/courses/{school.course}/certificate")
    assert answer.headers["location"] == address
    exports = f"/courses/{school.course}/exports"
    assert "0 certificates issued." in ines.get(exports).text, "and nobody is said to have earned one anew"
    assert ines.post(f"{exports}/certificates").status_code == 303
    assert 'class="certificate"' not in ines.get(f"{exports}/certificates").text
    assert "This certificate was revoked" in school.client().get(address).text


def test_of_who_has_left_the_course_it_is_revoked_too(school: School) -> None:
    address, ines = certified(school), school.client("ines")
    enrolments.leave(school.store, school.course, school.people["anna"], actor_id=None)
    assert place(school) in ines.get(f"/courses/{school.course}/certificates").text
    told(ines, f"{place(school)}/revoke", {"reason": REASON})
    assert "This certificate was revoked" in school.client().get(address).text


@pytest.mark.parametrize("login", ["anna", "ben", "otto", "robot", None])
def test_nobody_else_revokes(school: School, login: str | None) -> None:
    address, browser = certified(school), school.client(login)
    for what in ("revoke", "reinstate"):
        answer = browser.post(f"{place(school)}/{what}", data={"reason": REASON})
        assert answer.status_code in (401, 403, 404)
    assert browser.get(place(school)).status_code in (303, 404)
    # Their own course's address leads to no certificate of another one.
    elsewhere = f"/courses/{school.other_course}/certificates/{school.people['anna']}"
    if login == "otto":
        assert browser.get(elsewhere).status_code == 404
        assert browser.post(f"{elsewhere}/revoke", data={"reason": REASON}).status_code == 404
    assert "This certificate holds" in school.client().get(address).text


def test_a_forged_form_revokes_nothing(school: School) -> None:
    address, ines = certified(school), school.client("ines")
    del ines.headers["X-CSRF-Token"]
    assert ines.post(f"{place(school)}/revoke", data={"reason": REASON}).status_code == 403
    assert "This certificate holds" in school.client().get(address).text


def test_who_has_none_has_no_such_page(school: School) -> None:
    ines = school.client("ines")
    assert ines.get(place(school)).status_code == 404
    assert "Certificate</h2>" not in ines.get(f"/courses/{school.course}/people/{school.people['anna']}").text
    assert "No certificate is issued yet" in ines.get(f"/courses/{school.course}/certificates").text
