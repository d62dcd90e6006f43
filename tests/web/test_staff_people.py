"""Bringing people into a course, helping them back in, and letting them go: by the pages that an instructor uses."""

from __future__ import annotations

import csv
import re
from base64 import b64decode
from datetime import UTC, datetime, timedelta

import pytest

from grader.model.grade import Verdict
from grader.store import enrolments, invitations, people
from grader.store.attempts import AttemptFilter, attempt, attempts
from grader.store.tables.person import Role
from grader.web.staff.roster import MAX_BYTES, read_roster
from tests.store.campus import verdict_of
from tests.web.conftest import PASSWORD, School

SECRET = re.compile(r'<strong class="mono">([a-z0-9-]{14})</strong>')


def listed(data: bytes) -> list[tuple[str, str]]:
    roster = read_roster(data)
    assert not roster.troubles, roster.troubles
    return [(one.login, one.name) for one in roster.people]


@pytest.mark.parametrize(
    "data",
    [
        b"login,name\nmia,Mia M\xc3\xbcller\n",
        b"\xef\xbb\xbflogin,name\r\nmia,Mia M\xc3\xbcller\r\n",
        "Name;Login;Matrikel\nMia Müller; MIA ;12\n".encode("cp1252"),
        "login\tname\nmia\tMia Müller\n".encode("utf-16"),
        'sep=;\n"Login";"Name"\n"mia";"Mia Müller"\n'.encode(),
        "First name,Last name,Username,Groups\nMia,Müller,mia,a\n".encode(),
        "\n\nlogin|name\n\nmia|Mia Müller\n\n".encode(),
        'name,E-Mail\n"Mia Müller",mia'.encode(),
    ],
)
def test_lists_of_many_programs_are_read(data: bytes) -> None:
    assert listed(data) == [("mia", "Mia Müller")]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "empty"),
        (b"\n \n", "empty"),
        (b"PK\x03\x04rest", "workbook"),
        (b"login,name\n\x00\x01", "not text"),
        (b"who,what\na,b\n", "name the columns"),
        (b"login,name\n", "nobody below"),
        (b"x" * (MAX_BYTES + 1), "MiB"),
        (b'login,name\n"never closed,Mia\n', ""),
    ],
)
def test_what_is_no_list_says_why(data: bytes, told: str) -> None:
    roster = read_roster(data)
    assert not roster.people
    assert told in roster.troubles[0].text


def test_each_bad_line_is_told_by_its_number_and_the_others_are_kept() -> None:
    roster = read_roster(
        b"login,name\nmia,Mia\n,Nobody\nno name,X\nmia,Again\nleo,\njust-one-cell\n\nzoe,Zoe\n"
    )
    assert [one.login for one in roster.people] == ["mia", "zoe"]
    assert [(one.line, one.text.split(".")[0]) for one in roster.troubles] == [
        (3, "Has no login"),
        (4, "“no name” is no login: no spaces, commas, slashes, quotation or angle marks"),
        (5, "The login mia stands in line 2 already"),
        (6, "Has no name"),
        (7, "Has 1 cells, too few for the columns that the first line names"),
    ]


def test_a_list_is_looked_at_before_anything_changes(school: School) -> None:
    ines, at = school.client("ines"), f"/courses/{school.course}/people"
    text = "login;name\nanna;Anna\nolga;Olga\nmia;Mia Müller\nbad login;X\n"
    before = len(enrolments.participants(school.store, school.course))
    preview = ines.post(f"{at}/import", files={"file": ("people.csv", text.encode("cp1252"))})
    assert preview.status_code == 200
    for told in ("takes part already", "enrol the account that is there", "new account", "Line 5"):
        assert told in preview.text
    assert len(enrolments.participants(school.store, school.course)) == before
    assert people.account_by_login(school.store, "mia") is None

    kept = re.search(r'<textarea name="text"[^>]*>\n(.*?)</textarea>', preview.text, re.DOTALL)
    assert kept is not None
    handed = ines.post(f"{at}/import/take-over", data={"text": kept[1]})
    secrets = SECRET.findall(handed.text)
    assert len(secrets) == 1, "one account is new, the other keeps its password"
    mia = people.check_password(school.store, "mia", secrets[0])
    assert mia is not None
    assert mia.must_change
    assert people.check_password(school.store, "olga", PASSWORD) is not None
    assert {one.login for one in enrolments.participants(school.store, school.course)} >= {
        "mia",
        "olga",
        "anna",
    }
    # Once more: nobody is new, no password is shown, nobody is enrolled twice.
    again = ines.post(f"{at}/import/take-over", data={"text": kept[1]})
    assert again.status_code == 303


def handed_out(page: str) -> list[list[str]]:
    """The rows of the file that the page with one-time passwords holds."""
    (data,) = re.findall(r'href="data:text/csv;base64,([^"]+)" download="[a-z-]+\.csv"', page)
    return list(csv.reader(b64decode(data).decode("utf-8-sig").splitlines()))


def test_one_time_passwords_come_as_a_file_too(school: School) -> None:
    ines, at = school.client("ines"), f"/courses/{school.course}/people"
    text = "login,name\nmia,Mia Müller\nleo,=cmd()\nolga,Olga\n"
    handed = ines.post(f"{at}/import/take-over", data={"text": text}).text
    head, mia, leo, olga = handed_out(handed)
    assert head == ["name", "login", "password", "address"]
    assert mia[:2] == ["Mia Müller", "mia"]
    assert mia[2] in SECRET.findall(handed)
    assert people.check_password(school.store, "mia", mia[2]) is not None
    assert leo[0] == "'=cmd()", "no cell starts a formula"
    assert olga[1:3] == ["olga", ""]


def test_passwords_that_got_lost_are_given_anew_to_all_at_once(school: School) -> None:
    ines, at = school.client("ines"), f"/courses/{school.course}/people"
    assert "New one-time passwords" not in ines.get(at).text
    lost = handed_out(
        ines.post(f"{at}/import/take-over", data={"text": "login,name\nmia,Mia\nleo,Leo\n"}).text
    )
    assert "New one-time passwords for all 2" in ines.get(at).text
    again = handed_out(ines.post(f"{at}/passwords").text)
    assert [row[1] for row in again] == ["login", "leo", "mia"]
    assert people.check_password(school.store, "leo", lost[2][2]) is None
    assert people.check_password(school.store, "leo", again[1][2]) is not None
    assert people.check_password(school.store, "anna", PASSWORD) is not None, "who has one keeps it"
    assert school.client("anna").post(f"{at}/passwords").status_code == 404


def test_one_learner_is_added_and_signs_in_with_what_was_shown(school: School) -> None:
    ines, at = school.client("ines"), f"/courses/{school.course}/people"
    refused = ines.post(at, data={"login": "no spaces please", "name": "X"})
    assert refused.status_code == 422
    assert "is no login" in refused.text
    (secret,) = SECRET.findall(ines.post(at, data={"login": "Mia", "name": "Mia M"}).text)
    assert people.check_password(school.store, "mia", secret) is not None


def test_a_forgotten_password_is_replaced_and_ends_sessions(school: School) -> None:
    anna = school.client("anna")
    assert anna.get("/").status_code == 200
    place = f"/courses/{school.course}/people/{school.people['anna']}/password"
    (secret,) = SECRET.findall(school.client("ines").post(place).text)
    assert people.check_password(school.store, "anna", PASSWORD) is None
    found = people.check_password(school.store, "anna", secret)
    assert found is not None
    assert found.must_change
    assert anna.get("/account").status_code in (302, 303), "the old session is over"


def test_an_instructor_cannot_become_somebody_else(school: School) -> None:
    """Not an administrator, not another instructor, not a learner of courses that are not theirs."""
    ines = school.client("ines")
    for login, role in (("ada", Role.LEARNER), ("otto", Role.LEARNER), ("olga", Role.LEARNER)):
        enrolments.enrol(school.store, school.course, school.people[login], role)
    for login in ("ada", "otto", "olga", "ines", "robot"):
        place = f"/courses/{school.course}/people/{school.people[login]}"
        assert not SECRET.findall(ines.post(f"{place}/password", follow_redirects=True).text), login
        ines.post(f"{place}/erase", data={"confirm": login})
        assert people.account_by_login(school.store, login) is not None, login
        if login != "robot":
            assert people.check_password(school.store, login, PASSWORD) is not None, login
    # Whoever is in no course of theirs is not there at all.
    enrolments.leave(school.store, school.course, school.people["olga"], actor_id=None)
    assert ines.get(f"/courses/{school.course}/people/{school.people['olga']}").status_code == 404


def test_nobody_takes_over_a_former_learner_of_others(school: School) -> None:
    """Enrolling them, which takes their login alone, gives no say over their account."""
    judged, anna = school.judge("anna"), school.people["anna"]
    enrolments.leave(school.store, school.course, anna, actor_id=school.people["ines"])
    otto, at = school.client("otto"), f"/courses/{school.other_course}/people"
    assert otto.post(at, data={"login": "anna", "name": "Anna"}).status_code == 200
    assert "only an administrator may do this" in otto.get(f"{at}/{anna}").text
    assert not SECRET.findall(otto.post(f"{at}/{anna}/password", follow_redirects=True).text)
    otto.post(f"{at}/{anna}/erase", data={"confirm": "anna"})
    assert people.check_password(school.store, "anna", PASSWORD) is not None
    assert attempt(school.store, judged) is not None
    assert SECRET.findall(school.client("ada").post(f"/admin/people/{anna}/password").text)


def test_erasing_takes_the_login_typed_and_takes_everything(school: School) -> None:
    school.judge("anna", files={"report.html": b"annas"})
    bens = school.judge("ben", files={"report.html": b"bens"})
    ines, place = school.client("ines"), f"/courses/{school.course}/people/{school.people['anna']}"
    assert ines.post(f"{place}/erase", data={"confirm": "ann"}).status_code == 422
    assert people.account_by_login(school.store, "anna") is not None
    assert ines.post(f"{place}/erase", data={"confirm": " Anna "}).status_code == 303
    assert people.account_by_login(school.store, "anna") is None
    assert [one.id for one in attempts(school.store, AttemptFilter())] == [bens]


def test_nobody_locks_themselves_out(school: School) -> None:
    ines, place = school.client("ines"), f"/courses/{school.course}/people/{school.people['ines']}"
    ines.post(f"{place}/remove")
    ines.post(f"{place}/role", data={"role": "learner"})
    assert ines.get(f"/courses/{school.course}/people").status_code == 200


def test_a_persons_page_says_how_they_stand(school: School) -> None:
    attempt = school.judge("anna", grade=verdict_of(Verdict.REJECTED, 40.0))
    ines, place = school.client("ines"), f"/courses/{school.course}/people/{school.people['anna']}"
    text = ines.get(place).text
    assert f'href="/attempts/{attempt}"' in text
    assert "40 of 100" in text
    assert "not handed in" in text
    assert "20 % in all" in text
    assert "No sign-in is on record" in text
    browser = school.client()
    data = {"login": "anna", "password": PASSWORD, **browser.form("/sign-in")}
    assert browser.post("/sign-in", data=data).status_code == 303
    assert "Last signed in" in ines.get(place).text


def test_removing_keeps_what_was_handed_in(school: School) -> None:
    attempt = school.judge("anna")
    ines = school.client("ines")
    ines.post(f"/courses/{school.course}/people/{school.people['anna']}/remove")
    assert school.client("anna").get(f"/courses/{school.course}").status_code == 404
    assert ines.get(f"/attempts/{attempt}/review").status_code == 200


def test_an_invitation_opens_the_course_until_it_is_revoked(school: School) -> None:
    ines, at = school.client("ines"), f"/courses/{school.course}/invitations"
    made = ines.post(at, data={"hours": "12", "uses": "5", "role": "learner"})
    poster = ines.get(made.headers["location"]).text
    (one,) = invitations.invitations_of(school.store, school.course)
    assert f"/join/{one.code}" in poster
    assert "data:image/svg+xml" in poster, "the QR code needs no other host"
    assert one.expires_at is not None
    assert abs(one.expires_at - datetime.now(UTC) - timedelta(hours=12)) < timedelta(minutes=5)
    assert invitations.redeem(school.store, one.code, school.people["olga"]).course_id == school.course
    assert ines.post(f"{at}/{one.code}/revoke").status_code == 303
    assert invitations.redeem(school.store, one.code, school.people["ada"]).course_id is None
    assert ines.get(f"{at}/{one.code}").status_code == 404


def test_an_invitation_of_another_course_is_not_there(school: School) -> None:
    code = invitations.invite(school.store, school.other_course, actor_id=None)
    ines, at = school.client("ines"), f"/courses/{school.course}/invitations/{code}"
    assert ines.get(at).status_code == 404
    assert ines.post(f"{at}/revoke").status_code == 404
    assert invitations.redeem(school.store, code, school.people["anna"]).course_id == school.other_course


@pytest.mark.parametrize("form", [{"hours": "9999"}, {"uses": "0"}, {"uses": "x"}, {"role": "admin"}])
def test_an_impossible_invitation_is_refused(school: School, form: dict[str, str]) -> None:
    wanted = {"hours": "12", "uses": "", "role": "learner", **form}
    answer = school.client("ines").post(f"/courses/{school.course}/invitations", data=wanted)
    assert answer.status_code == 422
    assert not invitations.invitations_of(school.store, school.course)
