"""Coming in: by a code, by a password, by one that works once; and going out again."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from typing import Any

import pytest

from grader.store.courses import enrolments
from grader.store.courses.enrolments import participants
from grader.store.people import invitations, people, tokens
from tests.web.conftest import PASSWORD, School, Served

WORDS = "four quite random words"


def code(school: School, **terms: float | int) -> str:
    return invitations.invite(school.store, school.course, actor_id=None, **terms)  # type: ignore[arg-type]


def fields(page: str) -> dict[str, str]:
    return dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', page))


def come_in(browser: Any, address: str, login: str) -> Any:
    """Fill in the form that a code leads to."""
    form = fields(browser.get(address).text)
    return browser.post(
        f"{address}/new", data={**form, "login": login, "name": login.title(), "password": WORDS}
    )


def test_a_code_makes_an_account_and_leads_to_the_tasks(school: School) -> None:
    browser = school.client()
    done = come_in(browser, f"/join/{code(school).lower()}", "eve")
    assert (done.status_code, done.headers["location"]) == (303, f"/courses/{school.course}")
    course = browser.get(done.headers["location"])
    assert course.status_code == 200
    assert "A first network" in course.text
    assert "Welcome" in course.text
    assert "Welcome" not in browser.get(f"/courses/{school.course}").text, "a message is shown once"


def test_who_has_an_account_joins_with_it(school: School) -> None:
    browser, address = school.client("olga"), f"/join/{code(school)}"
    assert "signed in as" in browser.get(address).text
    assert browser.post(address).headers["location"] == f"/courses/{school.course}"
    assert browser.get(f"/courses/{school.course}").status_code == 200


def test_a_room_of_sixty_comes_in_at_once(served: Served) -> None:
    school, address = served.school, f"/join/{code(served.school)}"

    def enter(number: int) -> int:
        with served.client(timeout=60) as browser:
            return int(come_in(browser, address, f"learner{number}").status_code)

    with ThreadPoolExecutor(20) as pool:
        assert set(pool.map(enter, range(60))) == {303}
    there = {one.login for one in participants(school.store, school.course)}
    assert {f"learner{number}" for number in range(60)} <= there


@pytest.mark.parametrize(
    ("login", "name", "password", "said"),
    [
        ("anna", "Anna", WORDS, "Somebody has this name already"),
        ("a", "Anna", WORDS, "2 to 64 letters"),
        ("<script>", "Anna", WORDS, "2 to 64 letters"),
        ("eve", " ", WORDS, "certificate"),
        ("eve", "Eve", "short", "At least 10 characters"),
        ("eve", "Eve", "x" * 257, "At least 10 characters"),
    ],
)
def test_what_is_missing_is_said_at_its_field_and_nothing_is_lost(
    school: School, login: str, name: str, password: str, said: str
) -> None:
    browser, address = school.client(), f"/join/{code(school)}"
    form = fields(browser.get(address).text)
    answer = browser.post(f"{address}/new", data={**form, "login": login, "name": name, "password": password})
    assert answer.status_code == 422
    assert said in answer.text
    assert 'aria-invalid="true"' in answer.text
    assert f'value="{login}"' in unescape(answer.text)
    assert password not in answer.text
    assert people.account_by_login(school.store, "eve") is None


def test_codes_that_open_nothing_say_why_and_make_no_account(school: School) -> None:
    used = code(school, max_uses=1)
    invitations.redeem(school.store, used, school.people["olga"])
    for bad, status, said in (
        ("NOSUCH22", 404, "opens no course"),
        (code(school, lifetime_s=-1), 410, "expired"),
        (used, 410, "as often as it may"),
    ):
        browser = school.client()
        assert said in browser.get(f"/join/{bad}").text
        form = fields(browser.get("/sign-in").text)
        data = {**form, "login": "eve", "name": "Eve", "password": WORDS}
        assert browser.post(f"/join/{bad}/new", data=data).status_code == status
    assert people.account_by_login(school.store, "eve") is None


def test_codes_cannot_be_guessed_for_long(school: School) -> None:
    browser = school.client()
    answers = [browser.get(f"/join/GUESS{number:03}").status_code for number in range(260)]
    assert answers[0] == 404
    assert answers[-1] == 429


def test_a_password_opens_and_a_wrong_one_says_nothing_about_the_account(school: School) -> None:
    browser = school.client()
    form = fields(browser.get("/sign-in?next=/account").text)
    wrong = [
        browser.post("/sign-in", data={**form, "login": login, "password": "wrong password"})
        for login in ("anna", "nobody")
    ]
    assert [answer.status_code for answer in wrong] == [401, 401]
    assert wrong[0].text.replace("anna", "nobody") == wrong[1].text
    right = browser.post("/sign-in", data={**form, "login": " ANNA ", "password": PASSWORD})
    assert (right.status_code, right.headers["location"]) == (303, "/account")
    assert browser.get("/account").status_code == 200


@pytest.mark.parametrize(
    "place",
    ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "/a\nb", "\\\\x"],
)
def test_signing_in_never_leads_away(school: School, place: str) -> None:
    browser = school.client()
    form = {**fields(browser.get("/sign-in").text), "next": place}
    done = browser.post("/sign-in", data={**form, "login": "anna", "password": PASSWORD})
    assert done.headers["location"] == "/"


def test_a_one_time_password_has_to_be_replaced_first(school: School) -> None:
    once = people.one_time_password()
    people.set_password(school.store, school.people["anna"], once, must_change=True, actor_id=None)
    browser = school.client()
    form = fields(browser.get("/sign-in").text)
    done = browser.post("/sign-in", data={**form, "login": "anna", "password": once})
    assert done.headers["location"] == "/password"
    assert browser.get(f"/courses/{school.course}").headers["location"] == "/password"
    form = fields(browser.get("/password").text)
    assert "not the same" in browser.post("/password", data={**form, "new": WORDS, "again": "else"}).text
    assert "10 to 256" in browser.post("/password", data={**form, "new": "short", "again": "short"}).text
    assert browser.post("/password", data={**form, "new": WORDS, "again": WORDS}).headers["location"] == "/"
    assert browser.get("/").status_code == 200
    assert people.check_password(school.store, "anna", WORDS) is not None
    assert people.check_password(school.store, "anna", once) is None


def test_a_new_password_takes_the_old_one_and_ends_other_sessions(school: School) -> None:
    here, elsewhere = school.client("anna"), school.client("anna")
    wrong = here.post("/password", data={"current": "not it", "new": WORDS, "again": WORDS})
    assert (wrong.status_code, "not your present" in wrong.text) == (422, True)
    assert here.post("/password", data={"current": PASSWORD, "new": WORDS, "again": WORDS}).status_code == 303
    assert here.get("/").status_code == 200
    assert elsewhere.get("/").headers["location"].startswith("/sign-in")


def test_signing_out_ends_this_browser_or_all(school: School) -> None:
    one, other = school.client(), school.client("anna")
    form = fields(one.get("/sign-in").text)
    one.post("/sign-in", data={**form, "login": "anna", "password": PASSWORD})
    form = fields(one.get("/").text)
    assert one.post("/sign-out", data=form).status_code == 303
    assert one.get("/").status_code == 303
    assert other.get("/").status_code == 200
    assert other.post("/account/sign-out-everywhere").status_code == 303
    assert school.client("ben").get("/").status_code == 200
    assert other.get("/").status_code == 303


def test_a_token_is_shown_once_and_opens_until_it_is_revoked(school: School) -> None:
    browser = school.client("anna")
    form = {"name": "<b>laptop", "scope": "submit", "days": "30"}
    page = browser.post("/account/tokens", data=form).text
    again = browser.post("/account/tokens", data=form)
    assert again.status_code == 422, "loading the page again sends the form again, and makes no second one"
    assert "You have a token of this name" in again.text
    assert "--token" in page, "grader login asks for it by that"
    (token,) = re.findall(r"grd_[\w-]{30,}", page)
    assert "&lt;b&gt;laptop" in page
    assert "<b>laptop" not in page
    assert token not in browser.get("/account").text
    assert school.program(token).get("/api/v1/me").status_code == 200
    (known,) = tokens.tokens_of(school.store, school.people["anna"])
    assert school.client("ben").post(f"/account/tokens/{known.id}/revoke").status_code == 404
    assert school.program(token).get("/api/v1/me").status_code == 200
    assert browser.post(f"/account/tokens/{known.id}/revoke").status_code == 303
    assert school.program(token).get("/api/v1/me").status_code == 401


@pytest.mark.parametrize(
    "data",
    [
        {"name": "x", "scope": "manage", "days": "30"},
        {"name": "x", "scope": "verify", "days": "30"},
        {"name": "x", "scope": "everything", "days": "30"},
        {"name": "x", "scope": "read", "days": "3650"},
        {"name": " ", "scope": "read", "days": "30"},
    ],
    ids=str,
)
def test_learners_make_no_tokens_beyond_their_reach(school: School, data: dict[str, str]) -> None:
    assert school.client("anna").post("/account/tokens", data=data).status_code == 422
    assert tokens.tokens_of(school.store, school.people["anna"]) == ()


def test_the_certificate_comes_when_all_is_accepted_and_anybody_can_check_it(school: School) -> None:
    browser, course = school.client("anna"), f"/courses/{school.course}"
    school.judge("anna")
    assert "Get the certificate" not in browser.get(course).text
    refused = browser.post(f"{course}/certificate")
    assert refused.headers["location"] == course
    assert "FashionMNIST" in browser.get(course).text.split("Not yet accepted")[1][:200]
    school.judge("anna", task=school.tasks["ddp-fashion"])
    assert "Get the certificate" in browser.get(course).text
    address = browser.post(f"{course}/certificate").headers["location"]
    assert browser.post(f"{course}/certificate").headers["location"] == address
    seen = school.client().get(address)
    assert seen.status_code == 200
    assert "This certificate holds" in seen.text
    assert "Anna" in seen.text
    assert f"http://testserver{address}" in seen.text
    assert "anna" not in seen.text.replace("Anna", ""), "the account's name is nobody's business"
    assert school.client().get("/certificates/nonsense").status_code == 404


def test_a_course_one_takes_no_part_in_any_more_is_gone(school: School) -> None:
    browser = school.client("anna")
    assert "Distributed training" in browser.get("/").text
    enrolments.leave(school.store, school.course, school.people["anna"], actor_id=None)
    assert "No course yet" in browser.get("/").text
    assert browser.get(f"/courses/{school.course}").status_code == 404
