"""Bringing people into a course, helping them back in, and letting them go: by the pages that an instructor uses."""

from __future__ import annotations

import csv
import re
import time
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from grader.model.grade import Verdict
from grader.store.attempts.attempts import AttemptFilter, attempt, attempts
from grader.store.courses import enrolments, extensions, roster_imports
from grader.store.courses.extensions import Extension
from grader.store.courses.roster_imports import RosterLine
from grader.store.delivery.delivery_channels import note_channel
from grader.store.grading import reviews
from grader.store.people import invitations, people
from grader.store.people.mailboxes import note_bounced, set_address
from grader.store.tables import OneTimePasswordRow, PersonRow, RosterImportRow
from grader.store.tables.person import Role
from grader.store.tables.roster_import import Admission
from grader.web.security.sealed_text import SealedText
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
        (7, "Has 1 cell, too few for the columns that the first line names"),
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
    assert "1 newcomer" in preview.text
    bring(school, kept[1])
    (mias,) = kept_passwords(school)
    mia = people.check_password(school.store, "mia", mias["password"])
    assert mia is not None
    assert mia.must_change
    assert people.check_password(school.store, "olga", PASSWORD) is not None
    there = {one.login for one in enrolments.participants(school.store, school.course)}
    assert there >= {"mia", "olga", "anna"}
    # Once more: nobody is new, and nobody is enrolled twice.
    again = bring(school, kept[1])
    assert again["New accounts"] == again["Accounts enrolled"] == again["Changed"] == "0"


def bring(school: School, text: str, admission: str = "password") -> dict[str, str]:
    """Import a list and wait until it is taken over; the figures that its page shows."""
    ines = school.client("ines")
    began = ines.post(
        f"/courses/{school.course}/people/import/take-over", data={"text": text, "admission": admission}
    )
    assert began.status_code == 303, began.text
    page = ""
    for _ in range(200):
        page = ines.get(began.headers["location"]).text
        if "Under way" not in page:
            break
        time.sleep(0.05)
    assert 'class="chip tone-good"' in page
    return dict(re.findall(r"<dt>([^<]+)</dt><dd>([^<]+)</dd>", page))


def csv_rows(school: School, name: str) -> list[dict[str, str]]:
    answer = school.client("ines").get(f"/courses/{school.course}/people/{name}")
    assert answer.status_code == 200
    return list(csv.DictReader(answer.content.decode("utf-8-sig").splitlines()))


def kept_passwords(school: School) -> list[dict[str, str]]:
    return csv_rows(school, "one-time-passwords.csv")


def test_one_time_passwords_are_fetched_until_they_are_used(school: School) -> None:
    """Whoever loses the page, the file or the connection asks again; whoever has signed in is on it no more."""
    bring(school, "login,name,section\nmia,Mia Müller,B\nleo,=cmd(),A\nolga,Olga,A\n")
    leo, mia = kept_passwords(school)
    assert list(mia) == ["section", "name", "login", "password", "address"]
    assert (mia["section"], mia["name"], mia["login"]) == ("B", "Mia Müller", "mia")
    assert leo["name"] == "'=cmd()", "no cell starts a formula"
    assert kept_passwords(school) == [leo, mia]
    with school.store.read() as connection:
        stored = " ".join(connection.execute(select(OneTimePasswordRow.sealed)).scalars())
    assert mia["password"] not in stored

    browser = school.client()
    data = {"login": "mia", "password": mia["password"], **browser.form("/sign-in")}
    assert browser.post("/sign-in", data=data).headers["location"] == "/password"
    assert kept_passwords(school) == [leo]
    # Of an account that came into the care of others, too, nothing is handed out any more.
    leos = people.account_by_login(school.store, "leo")
    assert leos is not None
    enrolments.enrol(school.store, school.other_course, leos.id, actor_id=school.people["otto"])
    assert kept_passwords(school) == []


def test_what_another_key_has_sealed_is_not_handed_out(school: School) -> None:
    bring(school, "login,name\nmia,Mia\n")
    vars(school.service)["one_time_passwords"] = SealedText("t" * 40, "one-time passwords")
    assert kept_passwords(school) == []
    assert (
        "New one-time passwords for this one"
        in school.client("ines").get(f"/courses/{school.course}/people").text
    )


def test_a_list_that_was_cut_off_goes_on_where_it_stopped(school: School) -> None:
    """As after a crash between two transactions: whoever looks at it starts it again; nobody is made twice."""
    lines = [RosterLine(number + 2, f"p{number}", f"Person {number}") for number in range(50)]
    brought = roster_imports.begin(
        school.store, school.course, lines, Admission.PASSWORD, actor_id=school.people["ines"]
    )
    assert roster_imports.take_next(school.store, 20, school.service.one_time_passwords.seal)
    before = {row["login"]: row["password"] for row in kept_passwords(school)}
    assert len(before) == 20
    ines, place = school.client("ines"), f"/courses/{school.course}/people/imports/{brought}"
    assert "20 of 50" in ines.get(place).text
    for _ in range(200):
        if "Under way" not in ines.get(place).text:
            break
        time.sleep(0.05)
    after = {row["login"]: row["password"] for row in kept_passwords(school)}
    assert len(after) == 50
    assert before.items() <= after.items(), "passwords that were handed out hold"
    with school.store.read() as connection:
        kept = connection.execute(select(RosterImportRow.lines)).scalar_one()
    assert kept == [], "names and addresses are not kept twice"


def test_a_line_that_the_database_refuses_is_told_and_the_others_are_taken(school: School) -> None:
    lines = [RosterLine(2, "mia", "Mia"), RosterLine(3, "leo", "Leo"), RosterLine(4, "zoe", "Zoe")]
    brought = roster_imports.begin(
        school.store, school.course, lines, Admission.PASSWORD, actor_id=school.people["ines"]
    )

    def seal(password: str) -> str:
        return school.service.one_time_passwords.seal(password)

    with school.store.write() as connection:
        connection.exec_driver_sql(
            "CREATE TRIGGER no_leo BEFORE INSERT ON people WHEN new.login = 'leo' BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
    while roster_imports.take_next(school.store, 20, seal):
        pass
    found = roster_imports.roster_import(school.store, school.course, brought)
    assert found is not None
    assert (found.num_new, found.num_done) == (2, 3)
    assert [line for line, _ in found.problems] == [3]
    assert [row["login"] for row in kept_passwords(school)] == ["mia", "zoe"]


def test_people_of_a_list_get_links_of_their_own(school: School) -> None:
    text = "Student,SIS Login ID,SIS User ID,Section,Email\nMia M,mia,17,A,Mia@uni.example\nOlga,olga,18,A,\n"
    told = bring(school, text, "invitation")
    assert (told["Links made"], told["Accounts enrolled"]) == ("1", "1")
    (row,) = csv_rows(school, "join-links.csv")
    assert (row["login"], row["email"], row["section"]) == ("mia", "mia@uni.example", "A")
    assert bring(school, text, "invitation")["Links made"] == "0", "who has a link keeps it"

    guest, path = school.client(), row["link"].removeprefix("http://testserver")
    assert 'value="Mia M"' in guest.get(path).text
    data = {"login": "mia", "name": "Mia M", "password": "four random words", **guest.form(path)}
    assert guest.post(f"{path}/new", data=data).headers["location"] == f"/courses/{school.course}"
    there = {one.login: one for one in enrolments.participants(school.store, school.course)}
    assert (there["mia"].section, there["mia"].external_id) == ("A", "17")
    assert there["mia"].email == "mia@uni.example"
    assert csv_rows(school, "join-links.csv") == []
    assert school.client().get(path).status_code == 410, "it works once"


def test_links_of_people_are_ended_once_that_is_confirmed(school: School) -> None:
    bring(school, "login,name\nmia,Mia\n", "invitation")
    (row,) = csv_rows(school, "join-links.csv")
    ines, at = school.client("ines"), f"/courses/{school.course}/people/join-links/revoke"
    assert "End this link?" in ines.post(at).text
    assert len(csv_rows(school, "join-links.csv")) == 1
    assert ines.post(at, data={"confirmed": "yes"}).status_code == 303
    assert csv_rows(school, "join-links.csv") == []
    assert school.client().get(f"/join/{row['link'].rpartition('/')[2]}").status_code == 404


def test_people_of_a_list_sign_on_elsewhere(school: School) -> None:
    bring(school, "login,name,email\nmia,Mia,m@uni.example\n", "sign_on")
    mia = people.account_by_login(school.store, "mia")
    assert mia is not None
    assert not mia.must_change
    with school.store.read() as connection:
        found = connection.execute(
            select(PersonRow.email, PersonRow.password_hash).where(PersonRow.id == mia.id)
        )
        assert found.one() == ("m@uni.example", None)
    assert kept_passwords(school) == []


def test_a_list_says_what_it_would_change(school: School) -> None:
    school.join("tess", Role.ASSISTANT, section="A")
    text = (
        "login,name,Section,ID number,role\nanna,Anna,B,7,student\ntess,Tess,A,,ta\n"
        "ben,Ben,,,observer\nzoe,Zoe,A,7,\nleo,Leo,A,8,TaEnrollment\nmax,Max,A,9,king\n"
    )
    ines, at = school.client("ines"), f"/courses/{school.course}/people"
    page = ines.post(f"{at}/import", data={"text": text}).text
    for told in (
        "section none → B; id none → 7",
        "takes part already, stays learner",
        "new account, as assistant",
        "The id 7 stands in line 2 already",
        "“king” is no role",
    ):
        assert told in page, told
    assert bring(school, text)["Changed"] == "1"
    there = {one.login: one for one in enrolments.participants(school.store, school.course)}
    assert (there["anna"].section, there["anna"].external_id) == ("B", "7")
    assert (there["leo"].role, there["leo"].section) == (Role.ASSISTANT, "A")
    assert there["ben"].role is Role.LEARNER
    assert "leo" in {row["login"] for row in kept_passwords(school)}, "of assistants, too"


def test_passwords_that_got_lost_are_given_anew_to_all_at_once(school: School) -> None:
    at = f"/courses/{school.course}/people"
    ines = school.client("ines")
    assert "New one-time passwords for" not in ines.get(at).text.replace("for the ticked", "")
    bring(school, "login,name\nmia,Mia\nleo,Leo\n")
    lost = {row["login"]: row["password"] for row in kept_passwords(school)}
    assert "New one-time passwords for all 2" in ines.get(at).text
    assert len(SECRET.findall(ines.post(f"{at}/passwords").text)) == 2
    again = {row["login"]: row["password"] for row in kept_passwords(school)}
    assert people.check_password(school.store, "leo", lost["leo"]) is None
    assert people.check_password(school.store, "leo", again["leo"]) is not None
    assert people.check_password(school.store, "anna", PASSWORD) is not None, "who has one keeps it"
    assert school.client("anna").post(f"{at}/passwords").status_code == 404


def test_ticked_people_get_new_passwords_once_that_is_confirmed(school: School) -> None:
    bring(school, "login,name\nmia,Mia\n")
    mia, ines, at = people.account_by_login(school.store, "mia"), school.client("ines"), "people"
    assert mia is not None
    people.set_password(school.store, mia.id, "her very own words", must_change=False, actor_id=mia.id)
    place = f"/courses/{school.course}/{at}/reset"
    ticked = {"person": [str(mia.id), str(school.people["ines"]), str(school.people["olga"])]}
    asked = ines.post(place, data=ticked)
    assert "New one-time passwords for 1 person?" in asked.text
    assert people.check_password(school.store, "mia", "her very own words") is not None
    (secret,) = SECRET.findall(ines.post(place, data={**ticked, "confirmed": "yes"}).text)
    assert people.check_password(school.store, "mia", secret) is not None
    assert [row["password"] for row in kept_passwords(school)] == [secret]
    assert people.check_password(school.store, "ines", PASSWORD) is not None
    assert people.check_password(school.store, "olga", PASSWORD) is not None


def test_people_are_put_into_sections_and_looked_up_by_them(school: School) -> None:
    ines, at = school.client("ines"), f"/courses/{school.course}/people"
    ticked = [str(school.people["anna"]), str(school.people["olga"])]
    assert ines.post(f"{at}/section", data={"person": ticked, "section": "Monday"}).status_code == 303
    assert ines.post(f"{at}/section", data={"section": "Monday"}).status_code == 303
    there = {one.login: one.section for one in enrolments.participants(school.store, school.course)}
    assert (there["anna"], there["ben"]) == ("Monday", None)
    olgas = enrolments.participants(school.store, school.other_course)
    assert {one.section for one in olgas} == {None}, "nobody of another course"
    monday = ines.get(f"{at}?section=Monday").text
    assert ">Anna</a>" in monday
    assert ">Ben</a>" not in monday
    assert ">Ben</a>" in ines.get(f"{at}?section=-").text
    assert ">Ben</a>" in ines.get(f"{at}?q=BEN").text
    place = f"{at}/{school.people['anna']}"
    assert ines.post(f"{place}/details", data={"section": "", "external_id": "s17"}).status_code == 303
    anna = next(one for one in enrolments.participants(school.store, school.course) if one.login == "anna")
    assert (anna.section, anna.external_id) == (None, "s17")
    assert "s17" in ines.get(place).text


def test_a_role_that_gives_a_say_is_asked_for_first(school: School) -> None:
    ines, place = school.client("ines"), f"/courses/{school.course}/people/{school.people['anna']}"
    for role in ("instructor", "assistant", "observer"):
        assert f"Make Anna an {role}?" in ines.post(f"{place}/role", data={"role": role}).text
        assert ines.post(f"{place}/role", data={"role": role, "confirmed": "yes"}).status_code == 303
        there = {one.login: one.role for one in enrolments.participants(school.store, school.course)}
        assert there["anna"] == role
    assert ines.post(f"{place}/role", data={"role": "learner"}).status_code == 303
    assert ines.post(f"{place}/role", data={"role": "admin"}).headers["location"].endswith("/people") is True


def test_a_learner_reads_their_total(school: School) -> None:
    anna, place = school.client("anna"), f"/courses/{school.course}"
    assert "Your total: 0 %" in anna.get(place).text
    school.judge("anna", grade=verdict_of(Verdict.REJECTED, 40.0))
    assert "Your total: 20 %" in anna.get(place).text
    assert "Your total" not in school.client("ines").get(place).text


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
    reviews.comment(school.store, attempt, "Look at the sampler", author_id=school.people["ines"])
    later = datetime.now(UTC) + timedelta(days=3)
    extensions.extend(
        school.store,
        school.task,
        Extension(later, reason="was ill"),
        person_ids=[school.people["anna"]],
        actor_id=None,
    )
    ines, place = school.client("ines"), f"/courses/{school.course}/people/{school.people['anna']}"
    text = ines.get(place).text
    assert "Look at the sampler" in text
    assert "was ill" in text
    assert f'href="/attempts/{attempt}"' in text
    assert "40 of 100" in text
    assert "not handed in" in text
    assert "20 % in all" in text
    assert "none is on record" in text
    browser = school.client()
    data = {"login": "anna", "password": PASSWORD, **browser.form("/sign-in")}
    assert browser.post("/sign-in", data=data).status_code == 303
    assert "none is on record" not in ines.get(place).text


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


def test_links_of_a_list_are_mailed_by_a_button_where_there_is_mail(school: School) -> None:
    bring(school, "login,name,email\nmia,Mia,mia@uni.example\nleo,Leo,\n", "invitation")
    ines, at = school.client("ines"), f"/courses/{school.course}/people"
    assert "join-links/mail" not in ines.get(at).text
    ines.post(f"{at}/join-links/mail")
    assert "Nobody was mailed: this site sends no mail" in ines.get(at).text
    note_channel(school.store, "mail", set_up=True, problem=None)
    assert f'action="{at}/join-links/mail"' in ines.get(at).text
    ines.post(f"{at}/join-links/mail")
    assert "Their links are on their way to 1." in ines.get(at).text


def test_a_persons_page_says_that_their_address_was_refused(school: School) -> None:
    set_address(school.store, school.people["anna"], "anna@uni.example", actor_id=None)
    ines, page = school.client("ines"), f"/courses/{school.course}/people/{school.people['anna']}"
    assert "refused" not in ines.get(page).text
    note_bounced(school.store, "anna@uni.example", "550 no such user")
    assert "A mail server refused it: 550 no such user." in ines.get(page).text
