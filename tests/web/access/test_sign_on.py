"""Signing on with an account of others: who comes in, as whom, and that no forgery of their side lets anybody in."""

from __future__ import annotations

import copy
import logging
import re
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import select, update

from grader.store.courses import enrolments
from grader.store.events import audit_of
from grader.store.people import identities, invitations, own_courses, people
from grader.store.people.erasure import erase
from grader.store.tables import EnrolmentRow, PersonRow
from grader.store.tables.api_token import Scope
from grader.store.tables.person import Role
from grader.web.app import create_app
from grader.web.sign_on import provider_answers
from tests.web import sign_on_provider as forged
from tests.web.conftest import PASSWORD, Browser, Furniture, School, _open, serving
from tests.web.sign_on_provider import CLIENT, SECRET, FakeProvider

ADDRESS = "anna@uni.example"


@pytest.fixture(scope="module")
def served_provider() -> Iterator[FakeProvider]:
    provider = FakeProvider()
    with serving(provider.app()) as url:
        provider.issuer = url
        yield provider


@pytest.fixture
def provider(served_provider: FakeProvider) -> FakeProvider:
    """An honest one, until a test tells it otherwise."""
    served_provider.forget()
    return served_provider


Opened = Callable[..., School]


@pytest.fixture(scope="module")
def app(furnished: tuple[Path, Furniture]) -> FastAPI:
    """One for all tests, which takes the service of each: making it takes longer than most of them."""
    folder, _ = furnished
    service = _open(folder / "grader.db", folder)
    made = create_app(service)
    service.store.close()
    return made


@pytest.fixture
def opened(
    furnished: tuple[Path, Furniture],
    app: FastAPI,
    tmp_path: Path,
    provider: FakeProvider,
    caplog: pytest.LogCaptureFixture,
) -> Iterator[Opened]:
    """The school with the provider beside passwords; keywords are lines of its table, `top` those above it."""
    folder, furniture = furnished
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    schools: list[School] = []

    def open_it(tables: str = "", top: str = "", **lines: str) -> School:
        said = "\n".join(f"{name} = {value}" for name, value in lines.items())
        file = tmp_path / "sign_on.toml"
        (tmp_path / "client-secret").write_text(f"{SECRET}\n")
        file.write_text(
            f'{top}\n[[provider]]\nid = "uni"\ntitle = "University account"\nissuer = "{provider.issuer}"\n'
            f'client_id = "{CLIENT}"\nclient_secret_file = "client-secret"\n{said}\n{tables}'
        )
        service = _open(tmp_path / "grader.db", tmp_path, sign_on=file)
        app.state.service = service
        schools.append(School(service, app, *copy.deepcopy(furniture)))
        return schools[-1]

    yield open_it
    for school in schools:
        school.store.close()
    assert SECRET not in caplog.text
    assert "access-" not in caplog.text


def begin(browser: Browser, place: str = "/") -> str:
    """Where the browser is sent to."""
    answer = browser.get("/sign-on/uni", params={"next": place})
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


def come(browser: Browser, provider: FakeProvider, place: str = "/", **more: str | None) -> Any:
    """All of one sign-on."""
    return browser.get(provider.send_back(begin(browser, place), **more))


def who(browser: Browser) -> str | None:
    """Whom the browser is signed in as."""
    answer = browser.get("/api/v1/me")
    return answer.json()["login"] if answer.status_code == 200 else None


def set_person(school: School, login: str, **values: Any) -> None:
    with school.store.write() as connection:
        connection.execute(update(PersonRow).where(PersonRow.login == login).values(**values))


def person(school: School, login: str) -> Any:
    with school.store.read() as connection:
        return connection.execute(select(PersonRow.__table__).where(PersonRow.login == login)).one()


def said(page: Any) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page.text)).split())


def test_whoever_the_provider_knows_gets_an_account_and_keeps_it(
    opened: Opened, provider: FakeProvider
) -> None:
    school = opened(open_accounts="true")
    provider.person = {
        "sub": "s-1",
        "preferred_username": "Eve.Ö",
        "name": " Eve \n Ekberg ",
        "email": "Eve@Uni.Example",
        "email_verified": True,
    }
    browser = school.client()
    back = come(browser, provider, "/account")
    assert (back.status_code, back.headers["location"]) == (303, "/account")
    assert who(browser) == "eve"
    assert "University account" in said(browser.get("/account"))
    row = person(school, "eve")
    assert (row.name, row.email, row.role) == ("Eve Ekberg", "eve@uni.example", Role.LEARNER)
    assert row.password_hash is None
    assert row.signed_in_at is not None
    assert row.language == "en", "that of the page"
    provider.person |= {"name": "Another Name", "email": "else@uni.example", "preferred_username": "anna"}
    again = school.client()
    come(again, provider)
    assert who(again) == "eve", "what changes there moves nobody here"


def test_two_at_once_make_one_account(opened: Opened, provider: FakeProvider) -> None:
    school = opened(open_accounts="true")
    browsers = [school.client() for _ in range(4)]
    places = [provider.send_back(begin(browser)) for browser in browsers]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda pair: pair[0].get(pair[1]), zip(browsers, places, strict=True)))
    assert [answer.status_code for answer in answers] == [303] * 4
    assert len({who(browser) for browser in browsers}) == 1


def test_a_login_that_is_taken_gets_a_number(opened: Opened, provider: FakeProvider) -> None:
    """Who calls themselves `anna` there is not our anna for that."""
    school = opened(open_accounts="true", link_by_address="true")
    provider.person = {"sub": "s-2", "preferred_username": "anna", "name": "Anna B."}
    browser = school.client()
    come(browser, provider)
    assert who(browser) == "anna2"


def test_name_and_address_are_asked_for_where_the_token_lacks_them(
    opened: Opened, provider: FakeProvider
) -> None:
    school = opened(open_accounts="true")
    provider.person = {"sub": "s-3", "name": "Eve", "email": ADDRESS, "email_verified": True}
    provider.in_token = ("sub",)
    come(school.client(), provider)
    assert person(school, "anna2").email == ADDRESS
    provider.answers["/userinfo"] = forged.broken
    failed = come(school.client(), provider)
    assert failed.status_code == 503


def test_userinfo_about_somebody_else_is_not_believed(opened: Opened, provider: FakeProvider) -> None:
    school = opened(open_accounts="true")
    provider.in_token, provider.forge = ("sub",), lambda claims: {**claims, "sub": "s-victim"}
    browser = school.client()
    assert come(browser, provider).status_code == 502
    assert who(browser) is None


def test_where_no_accounts_are_made_the_page_says_whom_to_ask(opened: Opened, provider: FakeProvider) -> None:
    school = opened()
    browser = school.client()
    page = come(browser, provider)
    assert page.status_code == 403
    assert "Ask your instructor" in said(page)
    assert who(browser) is None


def test_a_code_for_a_course_makes_an_account_on_the_way(opened: Opened, provider: FakeProvider) -> None:
    school = opened(top="local_passwords = false")
    code = invitations.invite(school.store, school.course, actor_id=None)
    browser = school.client()
    page = browser.get(f"/join/{code}")
    assert f"/sign-on/uni?next=/join/{code}" in page.text
    assert 'name="password"' not in page.text
    assert come(browser, provider, f"/join/{code}").headers["location"] == f"/join/{code}"
    form = browser.form(f"/join/{code}")
    assert browser.post(f"/join/{code}", data=form).headers["location"] == f"/courses/{school.course}"
    assert come(school.client(), provider, "/join/NOSUCH22").status_code == 303, "the account is there now"
    provider.person = {"sub": "s-other"}
    assert come(school.client(), provider, "/join/NOSUCH22").status_code == 403


@pytest.mark.parametrize(
    "place",
    ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "/" + "x" * 3000],
)
def test_a_sign_on_leads_to_no_other_site(opened: Opened, provider: FakeProvider, place: str) -> None:
    school = opened(open_accounts="true")
    assert come(school.client(), provider, place).headers["location"] == "/"


def test_a_verified_address_opens_the_learners_account_that_has_it(
    opened: Opened, provider: FakeProvider
) -> None:
    """What opened the account before opens it no more: whoever made it may have waited for its owner."""
    school = opened(link_by_address="true")
    set_person(school, "anna", email=ADDRESS)
    before, program = school.client("anna"), school.program(school.token("anna", Scope.SUBMIT))
    provider.person = {"sub": "s-4", "email": ADDRESS.upper(), "email_verified": True}
    browser = school.client()
    come(browser, provider)
    assert who(browser) == "anna"
    assert "opens your account here from now on" in said(browser.get("/account"))
    assert who(before) is None
    assert program.get("/api/v1/me").status_code == 401
    assert people.check_password(school.store, "anna", PASSWORD) is None
    kinds = [event.kind for event in audit_of(school.store, f"person:{school.people['anna']}")]
    assert "sign_on_linked" in kinds


@pytest.mark.parametrize(
    ("login", "claims", "lines"),
    [
        ("anna", {"email_verified": False}, {}),
        ("anna", {}, {}),
        ("anna", {"email_verified": "yes"}, {}),
        ("ines", {"email_verified": True}, {}),
        ("ada", {"email_verified": True}, {}),
        ("robot", {"email_verified": True}, {}),
        ("anna", {"email_verified": True}, {"link_by_address": "false"}),
    ],
)
def test_an_address_alone_opens_nothing_else(
    opened: Opened, provider: FakeProvider, login: str, claims: dict[str, Any], lines: dict[str, str]
) -> None:
    school = opened(**{"link_by_address": "true", **lines})
    set_person(school, login, email=ADDRESS)
    provider.person = {"sub": "s-5", "email": ADDRESS, **claims}
    browser = school.client()
    assert come(browser, provider).status_code == 403
    assert who(browser) is None
    assert not identities.sign_on_of(school.store, school.people[login]).identities


def test_who_ever_taught_is_opened_by_no_address(opened: Opened, provider: FakeProvider) -> None:
    school = opened(link_by_address="true", open_accounts="true")
    enrolments.enrol(school.store, school.other_course, school.people["anna"], Role.INSTRUCTOR)
    enrolments.leave(school.store, school.other_course, school.people["anna"], actor_id=None)
    set_person(school, "anna", email=ADDRESS)
    provider.person = {"sub": "s-6", "email": ADDRESS, "email_verified": True}
    page = come(school.client(), provider)
    assert page.status_code == 403
    assert "add University account on its account page" in said(page)


def test_two_accounts_of_one_address_are_opened_by_neither(opened: Opened, provider: FakeProvider) -> None:
    school = opened(link_by_address="true", open_accounts="true")
    for login in ("anna", "ben"):
        set_person(school, login, email=ADDRESS)
    provider.person = {"sub": "s-7", "email": ADDRESS, "email_verified": True}
    assert come(school.client(), provider).status_code == 403


def test_an_account_that_was_made_for_an_address_is_its_owners(
    opened: Opened, provider: FakeProvider
) -> None:
    """Nobody could ever sign in to it, so whoever wrote the address there has said whose it is: staff's, too."""
    school = opened(link_by_address="true")
    made = people.add_person(school.store, "otilia", "Otilia")
    enrolments.enrol(school.store, school.course, made, Role.INSTRUCTOR)
    set_person(school, "otilia", email=ADDRESS)
    provider.person = {"sub": "s-8", "email": ADDRESS, "email_verified": True}
    browser = school.client()
    come(browser, provider)
    assert who(browser) == "otilia"


def test_an_address_that_is_given_to_another_person_there_opens_nothing_of_the_first(
    opened: Opened, provider: FakeProvider
) -> None:
    school = opened(link_by_address="true", open_accounts="true")
    provider.person = {"sub": "first", "email": ADDRESS, "email_verified": True}
    first, second = school.client(), school.client()
    come(first, provider)
    provider.person["sub"] = "second"
    come(second, provider)
    assert None not in (who(first), who(second))
    assert who(first) != who(second)


def test_closed_accounts_stay_closed_and_erased_ones_start_anew(
    opened: Opened, provider: FakeProvider
) -> None:
    school = opened(open_accounts="true")
    browser = school.client()
    come(browser, provider)
    login = str(who(browser))
    number = person(school, login).id
    people.set_enabled(school.store, number, False, actor_id=None)
    page = come(school.client(), provider)
    assert page.status_code == 403
    assert "closed" in said(page)
    set_person(school, login, name="As it was")
    erase(school.store, school.files, number, actor_id=None)
    assert who(browser) is None
    anew = school.client()
    come(anew, provider)
    assert person(school, str(who(anew))).name == "Anna Arndt"
    assert who(browser) is None, "the number may be that of the one before; its sessions are not"


def test_only_addresses_of_some_domains_may_come_in(opened: Opened, provider: FakeProvider) -> None:
    school = opened(open_accounts="true", domains='["uni.example"]')
    for address, verified, status in (
        ("eve@uni.example", True, 303),
        ("eve@uni.example", False, 403),
        ("eve@evil-uni.example", True, 403),
        ("eve@uni.example@evil.example", True, 403),
    ):
        provider.person = {"sub": f"s-{address}", "email": address, "email_verified": verified}
        assert come(school.client(), provider).status_code == status, address


FORGERIES: dict[str, dict[str, Any]] = {
    "another issuer": {"forge": lambda c: {**c, "iss": "https://evil.example"}},
    "another audience": {"forge": lambda c: {**c, "aud": "another-client"}},
    "several audiences and no azp": {"forge": lambda c: {**c, "aud": [CLIENT, "other"]}},
    "for another party": {"forge": lambda c: {**c, "azp": "another-client"}},
    "another nonce": {"forge": lambda c: {**c, "nonce": "a nonce of another browser"}},
    "no nonce": {"forge": lambda c: {**c, "nonce": None}},
    "expired": {"forge": lambda c: {**c, "exp": int(time.time()) - 600}},
    "without an end": {"forge": lambda c: {**c, "exp": None}},
    "never ending": {"forge": lambda c: {**c, "exp": "tomorrow"}},
    "from the future": {"forge": lambda c: {**c, "iat": int(time.time()) + 3600}},
    "without a subject": {"forge": lambda c: {**c, "sub": None}},
    "an empty subject": {"forge": lambda c: {**c, "sub": ""}},
    "a subject that is none": {"forge": lambda c: {**c, "sub": ["s-anna"]}},
    "a subject too long to keep": {"forge": lambda c: {**c, "sub": "s" * 256}},
    "a subject with a NUL": {"forge": lambda c: {**c, "sub": "s-anna\0"}},
    "another access token's": {"forge": lambda c: {**c, "at_hash": "AAAAAAAAAAAAAAAAAAAAAA"}},
    "none": {"sign": forged.unsigned},
    "nOnE": {"sign": forged.unsigned, "header": {"alg": "nOnE"}},
    "HS256 with the public key": {"sign": forged.signed_with_the_public_key},
    "another's key": {"sign": forged.signed_by_another},
    "a key of its own": {"sign": forged.with_a_key_of_its_own},
    "an unknown key": {"header": {"kid": "unknown"}},
    "no token": {"sign": lambda *_: "not.a.token"},
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_token_signs_nobody_in(
    opened: Opened, provider: FakeProvider, forgery: str, caplog: pytest.LogCaptureFixture
) -> None:
    school = opened(open_accounts="true")
    for name, value in FORGERIES[forgery].items():
        setattr(provider, name, value)
    browser = school.client()
    with caplog.at_level(logging.WARNING):
        page = come(browser, provider)
    assert page.status_code == 502
    assert "was not believed" in said(page)
    assert who(browser) is None
    assert "came to nothing" in caplog.text
    with school.store.read() as connection:
        assert not [row for row in connection.execute(select(PersonRow.login)) if row.login.startswith("s-")]


def test_a_clock_that_is_off_a_little_and_new_keys_are_forgiven(
    opened: Opened, provider: FakeProvider
) -> None:
    school = opened(open_accounts="true")
    provider.forge = lambda c: {**c, "exp": int(time.time()) - 30, "iat": int(time.time()) + 30}
    assert come(school.client(), provider).status_code == 303
    provider.new_key()
    assert come(school.client(), provider).status_code == 303
    asked = provider.seen.count("/jwks")
    assert come(school.client(), provider).status_code == 303
    assert provider.seen.count("/jwks") == asked == 2
    assert provider.seen.count("/.well-known/openid-configuration") == 1


@pytest.mark.parametrize(
    ("address", "answer", "status"),
    [
        ("/token", forged.broken, 503),
        ("/token", forged.in_circles, 502),
        ("/token", forged.no_json, 502),
        ("/jwks", forged.huge, 502),
        ("/jwks", forged.no_json, 502),
        ("/jwks", forged.broken, 503),
        ("/.well-known/openid-configuration", forged.broken, 503),
        ("/.well-known/openid-configuration", forged.elsewhere, 502),
        ("/.well-known/openid-configuration", forged.huge, 502),
        ("/.well-known/openid-configuration", forged.no_json, 502),
    ],
)
def test_a_provider_that_fails_leads_to_a_page_that_says_what_to_do(
    opened: Opened, provider: FakeProvider, address: str, answer: Any, status: int
) -> None:
    school = opened(open_accounts="true")
    browser = school.client()
    provider.answers[address] = answer
    first = browser.get("/sign-on/uni?next=/account")
    page = first if first.status_code != 303 else browser.get(provider.send_back(first.headers["location"]))
    assert page.status_code == status
    assert "/sign-on/uni?next=/account" in page.text, "it can be tried again"
    assert who(browser) is None
    provider.answers.clear()
    assert come(browser, provider).status_code == 303


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://evil.example"},
        {"token_endpoint": None},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"jwks_uri": ["a"]},
        {"id_token_signing_alg_values_supported": ["none", "HS256"]},
    ],
)
def test_a_provider_that_says_strange_things_of_itself_is_not_believed(
    opened: Opened, provider: FakeProvider, metadata: dict[str, Any]
) -> None:
    provider.metadata = metadata
    assert opened().client().get("/sign-on/uni").status_code == 502


def test_a_provider_that_is_slow_holds_nobody_up(
    opened: Opened, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More wait for it than there are threads; the others are served meanwhile."""
    monkeypatch.setattr(provider_answers, "WHOLE_S", 2.0)
    school, waiting_s = opened(), 20.0
    provider.delay_s = waiting_s
    browser = httpx.Client(limits=httpx.Limits(max_connections=60), timeout=60)
    with browser, serving(school.app) as url, ThreadPoolExecutor(50) as pool:
        waiting = [pool.submit(browser.get, f"{url}/sign-on/uni") for _ in range(50)]
        until = time.monotonic() + 30
        while len(provider.seen) < 45 and time.monotonic() < until:
            time.sleep(0.01)
        form = browser.get(f"{url}/sign-in")
        assert form.status_code == 200
        assert not all(one.done() for one in waiting), "they still wait while the other page came"
        answers = [one.result() for one in waiting]
    assert {answer.status_code for answer in answers} == {503}
    assert all(answer.headers["retry-after"] for answer in answers)


def test_a_provider_that_is_not_there_is_said_to_be_away(opened: Opened, provider: FakeProvider) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        provider.issuer, there = f"http://127.0.0.1:{free.getsockname()[1]}", provider.issuer
    school = opened()
    provider.issuer = there
    assert school.client().get("/sign-on/uni").status_code == 503


def test_what_comes_back_counts_once_and_in_the_browser_that_began(
    opened: Opened, provider: FakeProvider
) -> None:
    school = opened(open_accounts="true")
    browser, other = school.client(), school.client()
    address = provider.send_back(begin(browser))
    assert other.get(address).status_code == 400, "somebody else's link signs nobody in"
    assert browser.get(address.replace("state=", "state=x")).status_code == 400
    assert browser.get(address).status_code == 303
    again = school.client()
    again.cookies.update(browser.cookies)
    page = again.get(address)
    assert page.status_code == 400
    assert "Begin once more" in said(page)


def test_a_code_is_no_use_twice_nor_from_another_issuer(opened: Opened, provider: FakeProvider) -> None:
    school = opened(open_accounts="true")
    first, second = school.client(), school.client()
    location = begin(first)
    address = provider.send_back(location)
    code = re.search(r"code=([\w-]+)", address)
    assert code is not None
    assert first.get(address).status_code == 303
    assert come(second, provider, code=code[1]).status_code == 400
    assert come(second, provider, iss="https://evil.example").status_code == 502
    assert come(second, provider, iss=None).status_code == 502
    stolen = provider.send_back(begin(school.client()))
    code = re.search(r"code=([\w-]+)", stolen)
    assert code is not None
    assert come(second, provider, code=code[1]).status_code == 400, "PKCE binds it to the browser that began"
    assert who(second) is None


def test_several_tabs_at_once_each_go_where_they_wanted(opened: Opened, provider: FakeProvider) -> None:
    school = opened(open_accounts="true")
    browser = school.client()
    tabs = {place: provider.send_back(begin(browser, place)) for place in ("/account", "/join", "/")}
    for place, address in tabs.items():
        assert browser.get(address).headers["location"] == place
    for number in range(20):
        browser.cookies.delete("session")
        begin(browser, f"/rules/{number}")
    assert len([name for name in browser.cookies if name.startswith("sign-on-")]) <= 6


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        ("access_denied", 403, "You were not signed in"),
        ("temporarily_unavailable", 503, "does not answer"),
        ("unauthorized_client", 502, "does not know this grader"),
        ("<script>", 502, "does not know this grader"),
    ],
)
def test_what_the_provider_refuses_is_said(
    opened: Opened, provider: FakeProvider, error: str, status: int, words: str
) -> None:
    page = come(opened().client(), provider, code=None, error=error, error_description="<b>no</b>")
    assert page.status_code == status
    assert words in said(page)
    assert "<script>" not in page.text
    assert "<b>" not in page.text


def test_a_wrong_client_secret_is_told_to_those_who_can_mend_it(
    opened: Opened, provider: FakeProvider, caplog: pytest.LogCaptureFixture
) -> None:
    school = opened()
    provider.secret = "another"
    with caplog.at_level(logging.WARNING):
        page = come(school.client(), provider)
    assert page.status_code == 502
    assert "its token endpoint says 401 invalid_client" in caplog.text


def test_cookies_of_a_sign_on_are_out_of_reach_of_scripts(opened: Opened, provider: FakeProvider) -> None:
    answer = opened().client().get("/sign-on/uni")
    (cookie,) = answer.headers.get_list("set-cookie")
    assert cookie.startswith("sign-on-")
    assert "httponly" in cookie.lower()
    assert "samesite=lax" in cookie.lower()


def test_signing_out_shows_the_way_out_of_the_provider(opened: Opened, provider: FakeProvider) -> None:
    school = opened(open_accounts="true")
    browser = school.client()
    come(browser, provider)
    done = browser.post("/sign-out", data=browser.form("/"))
    assert done.headers["location"] == "/sign-in?signed_out=uni"
    assert who(browser) is None
    page = browser.get(done.headers["location"])
    assert 'href="/sign-on/uni/sign-out"' in page.text
    there = browser.get("/sign-on/uni/sign-out").headers["location"]
    assert there.startswith(f"{provider.issuer}/end?client_id={CLIENT}&post_logout_redirect_uri=")
    assert "sign-out" not in school.client().get("/sign-in?signed_out=nobody").text


def test_where_the_provider_has_no_way_out_that_is_said(opened: Opened, provider: FakeProvider) -> None:
    school = opened(open_accounts="true")
    provider.metadata = {"end_session_endpoint": None}
    browser = school.client()
    come(browser, provider)
    page = browser.get(browser.post("/sign-out", data=browser.form("/")).headers["location"])
    assert "sign-out" not in page.text
    assert browser.get("/sign-on/uni/sign-out").headers["location"] == "/sign-in"


def test_what_groups_give_they_take_and_nothing_else(opened: Opened, provider: FakeProvider) -> None:
    tables = (
        '[provider.roles]\n"staff" = "instructor"\n"root" = "admin"\n'
        '[[provider.enrolments]]\ngroup = "ddp"\ncourse = "ddp"\nsection = "Monday"\n'
        '[[provider.enrolments]]\ngroup = "teachers"\ncourse = "other"\nrole = "instructor"\n'
        '[[provider.enrolments]]\ngroup = "ddp"\ncourse = "not there"\n'
    )
    school = opened(tables, open_accounts="true", groups_claim='"realm.groups"')

    def signed_on(*groups: str) -> tuple[Role, dict[int, Role]]:
        provider.person = {"sub": "s-g", "preferred_username": "gita", "realm": {"groups": list(groups)}}
        fresh = school.client()
        assert come(fresh, provider).status_code == 303
        row = person(school, "gita")
        return row.role, {one.course_id: one.role for one in own_courses.courses_of(school.store, row.id)}

    assert signed_on() == (Role.LEARNER, {})
    assert signed_on("staff", "ddp") == (Role.INSTRUCTOR, {school.course: Role.LEARNER})
    number = person(school, "gita").id
    with school.store.read() as connection:
        section = connection.execute(select(EnrolmentRow.section).where(EnrolmentRow.person_id == number))
        assert section.scalar_one() == "Monday"
    assert signed_on("root", "teachers") == (Role.ADMIN, {school.other_course: Role.INSTRUCTOR})
    assert signed_on() == (Role.LEARNER, {})
    # What staff gives stays, whatever groups give and take besides.
    enrolments.enrol(school.store, school.course, number, Role.LEARNER, actor_id=None)
    people.set_role(school.store, number, Role.INSTRUCTOR, actor_id=None)
    assert signed_on("staff", "ddp") == (Role.INSTRUCTOR, {school.course: Role.LEARNER})
    assert signed_on("root") == (Role.ADMIN, {school.course: Role.LEARNER})
    assert signed_on() == (Role.INSTRUCTOR, {school.course: Role.LEARNER})
    # So does what staff confirms while groups give it, too.
    people.set_role(school.store, number, Role.LEARNER, actor_id=None)
    assert signed_on("staff")[0] is Role.INSTRUCTOR
    people.set_role(school.store, number, Role.INSTRUCTOR, actor_id=None)
    assert signed_on()[0] is Role.INSTRUCTOR
    kinds = [event.kind for event in audit_of(school.store, f"person:{number}")]
    assert kinds.count("role_changed") >= 4


def test_groups_that_stand_elsewhere_change_nothing(opened: Opened, provider: FakeProvider) -> None:
    """Whoever is in very many groups is told by some providers where to ask for them, and not which they are."""
    school = opened(
        '[provider.roles]\n"staff" = "instructor"\n', open_accounts="true", groups_claim='"groups"'
    )
    provider.person = {"sub": "s-h", "preferred_username": "hana", "groups": ["staff"]}
    come(school.client(), provider)
    provider.person = {"sub": "s-h", "_claim_names": {"groups": "src1"}}
    come(school.client(), provider)
    assert person(school, "hana").role is Role.INSTRUCTOR
    provider.person = {"sub": "s-h"}
    come(school.client(), provider)
    assert person(school, "hana").role is Role.LEARNER


def add(browser: Browser, provider: FakeProvider) -> Any:
    """Add the provider on the account's page, all the way."""
    page = browser.post("/account/sign-on/uni/add", data=browser.form("/account"))
    assert page.status_code == 200, page.text
    link = re.search(rf'href="({re.escape(provider.issuer)}/authorize[^"]+)"', page.text)
    assert link is not None
    return browser.get(provider.send_back(unescape(link[1])))


def test_staff_adds_a_sign_on_while_signed_in_and_removes_it_again(
    opened: Opened, provider: FakeProvider
) -> None:
    school = opened()
    browser = school.client("ines")
    provider.person = {"sub": "s-ines", "email": "ines@uni.example", "email_verified": True}
    assert add(browser, provider).headers["location"] == "/account"
    assert "ines@uni.example opens this account" in said(browser.get("/account"))
    fresh = school.client()
    come(fresh, provider)
    assert who(fresh) == "ines"
    (own,) = identities.sign_on_of(school.store, school.people["ines"]).identities
    assert school.client("anna").post(f"/account/sign-on/{own.id}/remove").status_code == 404
    form = browser.form("/account")
    asked = browser.post(f"/account/sign-on/{own.id}/remove", data=form)
    assert "Remove University account?" in said(asked)
    browser.post(f"/account/sign-on/{own.id}/remove", data={**form, "confirmed": "yes"})
    assert come(school.client(), provider).status_code == 403
    kinds = [event.kind for event in audit_of(school.store, f"person:{school.people['ines']}")]
    assert {"sign_on_linked", "sign_on_removed"} <= set(kinds)


def test_the_last_way_in_stays(opened: Opened, provider: FakeProvider) -> None:
    school = opened(open_accounts="true")
    browser = school.client()
    come(browser, provider)
    (own,) = identities.sign_on_of(school.store, person(school, str(who(browser))).id).identities
    form = {**browser.form("/account"), "confirmed": "yes"}
    browser.post(f"/account/sign-on/{own.id}/remove", data=form)
    assert "is the only way into your account" in said(browser.get("/account"))
    assert come(school.client(), provider).status_code == 303


def test_an_identity_of_another_account_is_not_moved(opened: Opened, provider: FakeProvider) -> None:
    school = opened(open_accounts="true")
    first = school.client()
    come(first, provider)
    login, browser = who(first), school.client("anna")
    add(browser, provider)
    assert "opens another account here already" in said(browser.get("/account"))
    again = school.client()
    come(again, provider)
    assert who(again) == login


def test_nobody_is_made_to_add_an_identity(opened: Opened, provider: FakeProvider) -> None:
    """Neither by a link or form of another site, nor with a sign-on that began in somebody else's session."""
    school = opened(open_accounts="true")
    browser = school.client("anna")
    forged_form = school.client("anna")
    del forged_form.headers["X-CSRF-Token"]
    assert forged_form.post("/account/sign-on/uni/add").status_code == 403
    assert browser.get("/account/sign-on/uni/add").status_code == 405
    attacker = school.client("ben")
    page = attacker.post("/account/sign-on/uni/add", data=attacker.form("/account"))
    link = re.search(r'href="([^"]+/authorize[^"]+)"', page.text)
    assert link is not None
    address = provider.send_back(unescape(link[1]))
    browser.cookies.update({n: v for n, v in attacker.cookies.items() if n.startswith("sign-on-")})
    assert browser.get(address).status_code == 400
    for login in ("anna", "ben"):
        assert not identities.sign_on_of(school.store, school.people[login]).identities


def test_without_local_passwords_no_password_opens_anything(opened: Opened, provider: FakeProvider) -> None:
    school = opened(top="local_passwords = false", open_accounts="true")
    code = invitations.invite(school.store, school.course, actor_id=None)
    browser = school.client()
    page = browser.get("/sign-in?next=/account")
    assert 'name="password"' not in page.text
    assert "Sign in with University account" in said(page)
    form = browser.form("/join")
    come(browser, provider)
    browser.cookies.delete("session")
    typed = {**form, "login": "anna", "password": PASSWORD}
    assert browser.post("/sign-in", data=typed).status_code == 403
    assert browser.post(f"/join/{code}/new", data={**typed, "login": "new", "name": "N"}).status_code == 403
    program = school.program(None)
    refused = program.post("/api/v1/tokens", json={"login": "anna", "password": PASSWORD})
    assert refused.status_code == 403
    assert "account page" in refused.json()["error"]["message"]
    assert program.get("/api/v1/sign-in").json() == {
        "passwords": False,
        "providers": ["University account"],
    }
    anna = school.client("anna")
    assert "/password" not in anna.get("/account").text
    assert anna.get("/password").status_code == 403
    new = {"current": PASSWORD, "new": PASSWORD[::-1], "again": PASSWORD[::-1]}
    assert anna.post("/password", data=new).status_code == 403
    people.set_password(school.store, school.people["ben"], PASSWORD, must_change=True, actor_id=None)
    assert school.client("ben").get("/").status_code == 200, (
        "nobody is asked for a password that opens nothing"
    )


def test_without_local_passwords_staff_hand_none_out(opened: Opened) -> None:
    school = opened(top="local_passwords = false")
    ines, ada, at = school.client("ines"), school.client("ada"), f"/courses/{school.course}/people"
    text = "login,name\nmia,Mia\n"
    preview = ines.post(f"{at}/import", data={"text": text}).text
    assert 'value="password"' not in preview
    one = f"{at}/{school.people['anna']}"
    for page in (ines.get(at), ines.get(one), ada.get(f"/admin/people/{school.people['anna']}")):
        assert page.status_code == 200
        assert "one-time password" not in page.text.lower()
    taken = {"text": text, "admission": "password"}
    assert ines.post(f"{at}/import/take-over", data=taken).status_code == 403
    for place in ("passwords", "reset", f"{school.people['anna']}/password"):
        assert ines.post(f"{at}/{place}", data={"person": [school.people["anna"]]}).status_code == 403
    assert ines.get(f"{at}/one-time-passwords.csv").status_code == 403
    assert ada.post(f"/admin/people/{school.people['anna']}/password").status_code == 403
    assert ines.post(at, data={"login": "leo", "name": "Leo"}).headers["location"] == at
    made = people.account_by_login(school.store, "leo")
    assert made is not None
    assert not made.must_change, "made without a password"


def test_a_one_time_password_that_waits_is_needless_after_a_sign_on(
    opened: Opened, provider: FakeProvider
) -> None:
    school = opened()
    add(school.client("anna"), provider)
    once = people.one_time_password()
    people.set_password(school.store, school.people["anna"], once, must_change=True, actor_id=None)
    browser = school.client()
    assert come(browser, provider, "/account").headers["location"] == "/account"
    assert browser.get("/account").status_code == 200
    assert people.check_password(school.store, "anna", once) is None
