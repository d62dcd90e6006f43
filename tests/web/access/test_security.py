"""The doors: sessions, forgery, guessing, tokens, sizes and headers, against the real application."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from grader.store.attempts.attempts import AttemptFilter, attempts
from grader.store.people import people, tokens
from grader.store.people.invitations import invitations_of
from grader.store.tables.api_token import Scope
from grader.web.security import csrf
from tests.web.conftest import PASSWORD, SCRIPT, School, make_school

SUBMISSION = {"files": [{"path": "train.py", "text": SCRIPT}]}


def _sign_in(client: TestClient, login: str, password: str, **headers: str) -> int:
    page = client.get("/sign-in").text
    token = page.split('name="csrf" value="')[1].split('"')[0]
    data = {"login": login, "password": password, "csrf": token}
    return client.post("/sign-in", data=data, headers=headers).status_code


def test_a_password_opens_the_account_and_signing_out_closes_it(school: School) -> None:
    client = school.client()
    assert client.get("/account").headers["location"].startswith("/sign-in")
    assert _sign_in(client, "anna", PASSWORD) == 303
    page = client.get("/account")
    assert page.status_code == 200
    token = page.text.split('name="csrf" value="')[1].split('"')[0]
    client.post("/sign-out", data={"csrf": token})
    assert client.get("/account").status_code == 303


@pytest.mark.parametrize(
    "place",
    ["//evil.example", "https://evil.example", "/\\evil.example", "/\t/evil.example", "javascript:alert(1)"],
)
def test_signing_in_leads_to_no_other_site(school: School, place: str) -> None:
    client = school.client()
    token = client.get("/sign-in").text.split('name="csrf" value="')[1].split('"')[0]
    data = {"login": "anna", "password": PASSWORD, "csrf": token, "next": place}
    assert client.post("/sign-in", data=data).headers["location"] == "/"


def test_session_cookies_are_out_of_reach_of_scripts_and_other_sites(school: School) -> None:
    client = school.client()
    page = client.get("/sign-in").text
    token = page.split('name="csrf" value="')[1].split('"')[0]
    answer = client.post("/sign-in", data={"login": "anna", "password": PASSWORD, "csrf": token})
    cookie = next(c for c in answer.headers.get_list("set-cookie") if c.startswith("session="))
    assert "httponly" in cookie.lower()
    assert "samesite=lax" in cookie.lower()


def test_over_https_cookies_are_bound_to_the_host(empty_database: Path, tmp_path: Path) -> None:
    database = tmp_path / "grader.db"
    database.write_bytes(empty_database.read_bytes())
    school = make_school(database, tmp_path, public_url="https://grader.example")
    client = TestClient(school.app, base_url="https://grader.example", follow_redirects=False)
    assert _sign_in(client, "anna", PASSWORD, origin="https://grader.example") == 303
    cookies = client.get("/account").request.headers["cookie"]
    assert "__Host-session=" in cookies
    answer = client.get("/account")
    assert "max-age" in answer.headers["strict-transport-security"]
    assert (
        _sign_in(
            TestClient(school.app, base_url="https://grader.example"),
            "anna",
            PASSWORD,
            origin="https://evil.example",
        )
        == 403
    )
    school.store.close()


def test_a_copied_cookie_ends_with_the_session_that_it_was_copied_from(school: School) -> None:
    """Signing out ends it on the server; so does signing in once more on the same browser."""
    browser, beside = school.client("anna"), school.client("anna")
    copy = school.client()
    copy.cookies.set("session", browser.cookies["session"])
    assert copy.get("/account").status_code == 200
    assert browser.post("/sign-out").status_code == 303
    assert copy.get("/account").headers["location"].startswith("/sign-in")
    assert copy.get("/api/v1/me").status_code == 401
    assert beside.get("/account").status_code == 200, "another browser stays signed in"
    copy.cookies.set("session", beside.cookies["session"])
    again = beside.post("/sign-in", data={"login": "anna", "password": PASSWORD})
    assert again.headers["location"] == "/"
    assert copy.get("/account").status_code == 303
    assert beside.get("/account").status_code == 200


def test_a_token_ends_with_its_owners_password(school: School) -> None:
    """By their own hand, by signing out everywhere, by an instructor's and by an administrator's."""
    anna = school.people["anna"]
    new = {"current": PASSWORD, "new": PASSWORD[::-1], "again": PASSWORD[::-1]}
    for who, place, data in (
        ("anna", "/account/sign-out-everywhere", {}),
        ("anna", "/password", new),
        ("ines", f"/courses/{school.course}/people/{anna}/password", {}),
        ("ada", f"/admin/people/{anna}/password", {}),
    ):
        program = school.program(school.token("anna"))
        assert program.get("/api/v1/me").status_code == 200
        assert school.client(who).post(place, data=data).status_code in (200, 303), place
        assert program.get("/api/v1/me").status_code == 401, place


def test_another_password_ends_all_sessions(school: School) -> None:
    client = school.client("anna")
    assert client.get("/account").status_code == 200
    people.set_password(
        school.store, school.people["anna"], "another password", must_change=False, actor_id=None
    )
    assert client.get("/account").status_code == 303


def test_a_closed_account_opens_nothing(school: School) -> None:
    client, program = school.client("anna"), school.program(school.token("anna"))
    people.set_enabled(school.store, school.people["anna"], False, actor_id=None)
    assert client.get("/account").status_code == 303
    assert program.get("/api/v1/me").status_code == 401


def test_a_tampered_session_is_none(school: School) -> None:
    client = school.client("anna")
    value = client.cookies["session"]
    client.cookies.clear()
    client.cookies.set("session", value[:-2] + ("aa" if value[-2:] != "aa" else "bb"))
    assert client.get("/account").status_code == 303


def test_a_one_time_password_leads_to_another_one_before_anything_else(school: School) -> None:
    people.set_password(school.store, school.people["anna"], PASSWORD, must_change=True, actor_id=None)
    client = school.client("anna")
    for path in ("/", "/account", f"/courses/{school.course}"):
        answer = client.get(path)
        assert (answer.status_code, answer.headers.get("location")) == (303, "/password"), path
    assert client.get("/password").status_code == 200
    assert client.get("/api/v1/me").status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {csrf.HEADER: "0" * 64},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"referer": "https://evil.example/form"},
    ],
    ids=["no token", "wrong token", "origin", "no origin", "fetch metadata", "referer"],
)
def test_a_forged_request_changes_nothing(school: School, headers: dict[str, str]) -> None:
    client = school.client("anna")
    token = client.headers.pop(csrf.HEADER)
    attempt = school.hand_in("anna")
    if "origin" in headers or "referer" in headers or "sec-fetch-site" in headers:
        # Even with a token that leaked.
        headers = {csrf.HEADER: token, **headers}
    for path in (f"/attempts/{attempt}/cancel", f"/api/v1/attempts/{attempt}/cancel"):
        assert client.post(path, headers=headers).status_code == 403, path
    assert client.get(f"/api/v1/attempts/{attempt}").json()["state"] == "queued"
    done = client.post(f"/api/v1/attempts/{attempt}/cancel", headers={csrf.HEADER: token})
    assert done.json() == {"result": "cancelled"}


def test_one_sessions_token_is_no_use_in_another(school: School) -> None:
    anna, ben = school.client("anna"), school.client("ben")
    attempt = school.hand_in("ben")
    answer = ben.post(f"/attempts/{attempt}/cancel", headers={csrf.HEADER: anna.headers[csrf.HEADER]})
    assert answer.status_code == 403


def test_guessing_at_an_account_ends_after_a_few_tries(school: School) -> None:
    client = school.client()
    answers = [_sign_in(client, "anna", f"guess number {n}") for n in range(12)]
    assert 429 in answers
    assert _sign_in(client, "anna", PASSWORD) == 429, "the right password must not get through either"
    # Whoever sits at the same address and types their own password is not kept out.
    assert _sign_in(school.client(), "ben", PASSWORD) == 303


def test_sixty_people_behind_one_address_sign_in(school: School) -> None:
    for number in range(60):
        people.add_person(school.store, f"p{number}", "P", password=PASSWORD)
        client = school.client()
        # Everybody mistypes twice.
        assert 429 not in [_sign_in(client, f"p{number}", "not the one") for _ in range(2)]
        assert _sign_in(client, f"p{number}", PASSWORD) == 303


def test_unknown_logins_answer_as_wrong_passwords_do(school: School) -> None:
    one, two = school.client(), school.client()
    pages = []
    for client, login in ((one, "anna"), (two, "nobody-of-that-name")):
        token = client.get("/sign-in").text.split('name="csrf" value="')[1].split('"')[0]
        answer = client.post("/sign-in", data={"login": login, "password": "not this one", "csrf": token})
        pages.append((answer.status_code, answer.text.replace(login, "…").replace(token, "")))
    assert pages[0] == pages[1]


def test_tokens_end_when_they_expire_or_are_revoked(school: School) -> None:
    over = school.program(school.token("anna", lifetime_s=-1.0))
    assert over.get("/api/v1/me").status_code == 401
    program = school.program(school.token("anna"))
    assert program.get("/api/v1/me").json()["login"] == "anna"
    for one in tokens.tokens_of(school.store, school.people["anna"]):
        tokens.revoke_token(school.store, school.people["anna"], one.id, actor_id=None)
    answer = program.get("/api/v1/me")
    assert answer.status_code == 401
    assert answer.json()["error"]["kind"] == "sign_in"
    assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize("shown", ["Bearer", "Bearer ", "Basic YW5uYTp4", "grd_x", "Bearer grd_\u00e9"])
def test_what_is_no_token_opens_nothing(school: School, shown: str) -> None:
    answer = school.client().get("/api/v1/me", headers={b"Authorization": shown.encode("latin-1")})
    assert answer.status_code == 401


def test_guessing_at_tokens_ends_too(school: School) -> None:
    client = school.program("grd_guess")
    answers = {client.get("/api/v1/me").status_code for _ in range(320)}
    assert answers == {401, 429}


def test_a_reading_token_hands_nothing_in(school: School) -> None:
    program = school.program(school.token("anna", Scope.READ))
    answer = program.post(f"/api/v1/course-tasks/{school.task}/submissions", json=SUBMISSION)
    assert answer.status_code == 403
    assert "read" in answer.json()["error"]["message"]
    assert not attempts(school.store, AttemptFilter())


def test_handing_in_without_end_is_slowed_down(empty_database: Path, tmp_path: Path) -> None:
    database = tmp_path / "grader.db"
    database.write_bytes(empty_database.read_bytes())
    school = make_school(database, tmp_path, submits_per_minute=5)
    program = school.program(school.token("anna", Scope.SUBMIT))
    address = f"/api/v1/course-tasks/{school.task}/submissions"
    answers = [program.post(address, json=SUBMISSION) for _ in range(8)]
    assert [answer.status_code for answer in answers[:5]] == [202] * 5
    late = answers[-1]
    assert late.status_code == 429
    assert int(late.headers["retry-after"]) >= 1
    assert late.json()["error"]["kind"] == "too_many"
    # Others behind the same address are not.
    other = school.program(school.token("ben", Scope.SUBMIT))
    assert other.post(address, json=SUBMISSION).status_code == 202
    school.store.close()


def test_every_answer_carries_the_headers_that_keep_browsers_safe(school: School) -> None:
    client = school.client("anna")
    for path in ("/sign-in", "/", "/nowhere", "/api/v1/me", "/healthz"):
        headers = client.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'"), path
        assert "unsafe" not in headers["content-security-policy"], path
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cache-control"] == "no-store"
        assert headers["x-request-id"]


def test_a_request_keeps_the_id_that_it_came_with_if_it_is_one(school: School) -> None:
    client = school.client()
    assert (
        client.get("/healthz", headers={"x-request-id": "abc-12345"}).headers["x-request-id"] == "abc-12345"
    )
    forged = client.get("/healthz", headers={"x-request-id": 'x" onload="alert(1)'}).headers["x-request-id"]
    assert "onload" not in forged


def test_pages_of_ours_hold_nothing_that_the_policy_forbids(school: School) -> None:
    """Inline styles, scripts and handlers would silently not work."""
    client = school.client("ines")
    for path in ("/sign-in", "/", f"/courses/{school.course}", "/account", "/nowhere"):
        text = client.get(path).text
        assert not re.search(r"<[^>]+\s(style|on\w+)=", text), path
        assert not re.search(r"<script(?![^>]*\ssrc=)", text), path
        assert "<style" not in text, path


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "grader.evil.example", "localhost.evil.example"]
)
def test_links_that_are_given_away_name_no_foreign_host(school: School, host: str) -> None:
    """The name in a request is whatever somebody wrote there; nobody has told this service its own."""
    ines, at = school.client("ines"), f"/courses/{school.course}"
    ines.post(f"{at}/invitations", data={"hours": "12", "role": "learner"})
    (code,) = [one.code for one in invitations_of(school.store, school.course)]
    handed_out = ines.post(f"{at}/people", data={"login": "mia", "name": "Mia"}, headers={"host": host})
    pages = [
        ines.get(place, headers={"host": host})
        for place in (f"{at}/invitations", f"{at}/invitations/{code}", "/account")
    ]
    for page in (handed_out, *pages):
        assert page.status_code == 200
        assert "evil.example" not in page.text
    assert f"http://testserver:80/join/{code}" in pages[0].text
    assert "GRADER_PUBLIC_URL" in pages[0].text
    own = ines.get(f"{at}/invitations", headers={"host": "localhost:8000"}).text
    assert f"http://localhost:8000/join/{code}" in own
    assert "GRADER_PUBLIC_URL" not in own


def test_a_public_address_stands_in_every_link(empty_database: Path, tmp_path: Path) -> None:
    database = tmp_path / "grader.db"
    database.write_bytes(empty_database.read_bytes())
    school = make_school(database, tmp_path, public_url="http://grader.example")
    ines, at = school.client("ines"), f"/courses/{school.course}/invitations"
    ines.post(at, data={"hours": "12", "role": "learner"}, headers={"host": "evil.example"})
    shown = ines.get(at, headers={"host": "evil.example"}).text
    assert "http://grader.example/join/" in shown
    assert "evil.example" not in shown
    school.store.close()


@pytest.mark.parametrize("host", ["[", "a b", "]:x", "x:99999999", "\u00e9", "", "/@?#"])
def test_a_name_that_is_none_breaks_nothing(school: School, host: str) -> None:
    client = school.client("ines")
    for path in ("/sign-in", "/account", f"/courses/{school.course}/invitations"):
        answer = client.get(path, headers={b"host": host.encode("latin-1")})
        assert answer.status_code < 500, (path, answer.status_code)
