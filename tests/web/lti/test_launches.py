"""Launches by a learning platform: who comes in and where, and every launch that is not what it says it is."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from joserfc import jws
from sqlalchemy import select, update

from grader.lti.launch_message import CLAIM, course_role
from grader.lti.platform_keys import forget_keys
from grader.store.courses import enrolments
from grader.store.lti import lti_platforms
from grader.store.lti.lti_contexts import contexts_of
from grader.store.people import own_courses, people
from grader.store.people.mailboxes import mailbox
from grader.store.people.people import set_enabled
from grader.store.tables import IdentityRow, PersonRow
from grader.store.tables.person import Role
from tests.web.conftest import School, make_school
from tests.web.learning_platform import (
    CLIENT_ID,
    ROLE,
    Fault,
    TestPlatform,
    address,
    rsa_key,
)
from tests.web.lti_visits import (
    add_platform,
    arrive,
    begin,
    come,
    connect_as_ines,
    fields,
    launch,
    platform_of,
)


@pytest.fixture(scope="module")
def school(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[School]:
    """One for all of these tests, each of which has people of its own come."""
    folder = tmp_path_factory.mktemp("launches")
    (folder / "grader.db").write_bytes(empty_database.read_bytes())
    made = make_school(folder / "grader.db", folder)
    yield made
    made.store.close()


@pytest.fixture(scope="module")
def running(school: School) -> Iterator[TestPlatform]:
    """A platform whose course Ines has connected to hers."""
    with platform_of(school) as made:
        add_platform(school, made)
        connect_as_ines(school, made)
        yield made


@pytest.fixture
def platform(school: School, running: TestPlatform) -> Iterator[TestPlatform]:
    """The same, as an administrator added it, with keys that nobody has read yet."""
    forget_keys()
    yield running
    set_terms(school, running)
    forget_keys()


def set_terms(school: School, platform: TestPlatform, **more: Any) -> int:
    """Let the platform be known so, and return its id."""
    (known,) = lti_platforms.platforms(school.store)
    terms = lti_platforms.PlatformTerms(**platform.terms(**more))
    lti_platforms.change_platform(school.store, known.id, terms, actor_id=school.people["ada"])
    return known.id


def elsewhere(context: str) -> dict[str, Any]:
    """Another course of the platform."""
    return {f"{CLAIM}context": {"id": context, "title": context.title()}}


def roles(school: School) -> dict[str, Role]:
    return {one.login: one.role for one in enrolments.participants(school.store, school.course)}


def set_address(school: School, login: str, email: str) -> None:
    with school.store.write() as connection:
        connection.execute(update(PersonRow).where(PersonRow.login == login).values(email=email))


Forge = Callable[[TestPlatform, dict[str, Any]], str]


def with_claims(**more: Any) -> Forge:
    def forge(platform: TestPlatform, claims: dict[str, Any]) -> str:
        changed = {
            **claims,
            **{name: value(claims) if callable(value) else value for name, value in more.items()},
        }
        return platform.sign({name: value for name, value in changed.items() if value is not None})

    return forge


def part(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def unsigned(platform: TestPlatform, claims: dict[str, Any]) -> str:
    return f"{part({'alg': 'none', 'kid': 'k1'})}.{part(claims)}."


def by_public_key(platform: TestPlatform, claims: dict[str, Any]) -> str:
    """HS256 with the public key, which everybody has, as its secret."""
    head, body = part({"alg": "HS256", "kid": "k1"}), part(claims)
    mac = hmac.new(platform.key.as_pem(private=False), f"{head}.{body}".encode(), hashlib.sha256)
    return f"{head}.{body}.{base64.urlsafe_b64encode(mac.digest()).decode().rstrip('=')}"


def changed_after_signing(platform: TestPlatform, claims: dict[str, Any]) -> str:
    head, _, signature = platform.sign(claims).split(".")
    other = platform.sign({**claims, "sub": "somebody-else"}).split(".")[1]
    return f"{head}.{other}.{signature}"


FORGERIES: dict[str, tuple[Forge, str]] = {
    "wrong nonce": (with_claims(nonce="another"), "nonce"),
    "no nonce": (with_claims(nonce=None), "nonce"),
    "another audience": (with_claims(aud="somebody"), "another audience"),
    "several audiences, no authorized party": (with_claims(aud=[CLIENT_ID, "other"]), "another party"),
    "another authorized party": (with_claims(azp="other"), "another party"),
    "another issuer": (with_claims(iss="https://elsewhere.example"), "another issuer"),
    "expired": (with_claims(exp=lambda _: time.time() - 120), "expired"),
    "never expires": (with_claims(exp=None), "from when to when"),
    "made in the future": (with_claims(iat=lambda _: time.time() + 400), "future"),
    "made long ago": (with_claims(iat=lambda _: time.time() - 7200), "too old"),
    "no algorithm": (unsigned, "not signed with RS256"),
    "a secret instead of a key": (by_public_key, "not signed with RS256"),
    "somebody else's key under a published name": (
        lambda platform, claims: platform.sign(claims, rsa_key("evil"), "k1"),
        "signature does not hold",
    ),
    "a key that nobody published": (
        lambda platform, claims: platform.sign(claims, rsa_key("evil")),
        "does not publish",
    ),
    "changed after it was signed": (changed_after_signing, "signature does not hold"),
    "no token at all": (lambda platform, claims: "x.y.z", "no signed token"),
    "another deployment": (with_claims(**{f"{CLAIM}deployment_id": "99"}), "not allowed yet"),
    "no deployment": (with_claims(**{f"{CLAIM}deployment_id": None}), "deployment_id"),
    "another message": (
        with_claims(**{f"{CLAIM}message_type": "LtiSubmissionReviewRequest"}),
        "message_type",
    ),
    "another version": (with_claims(**{f"{CLAIM}version": "1.1"}), "LTI version"),
    "nobody": (with_claims(sub=None), "sub"),
    "a link without a link": (with_claims(**{f"{CLAIM}resource_link": None}), "does not say which"),
}


def test_a_launch_that_is_not_what_it_says_is_refused(school: School, platform: TestPlatform) -> None:
    before = roles(school)
    believed = []
    for what, (forge, said) in FORGERIES.items():
        browser = school.client()
        answer = launch(browser, platform, platform.claims, sign=partial(forge, platform))
        if answer.status_code != 403 or said not in answer.text or "session" in browser.cookies:
            believed.append(f"{what}: {answer.status_code} {said} {answer.text[-900:]}")
    assert not believed
    assert roles(school) == before
    # And what is as it says comes in.
    assert come(school, platform)[1].status_code == 200


def test_a_launch_is_used_once(school: School, platform: TestPlatform) -> None:
    browser = school.client()
    asked = begin(browser, platform)
    form = {"state": asked["state"], "id_token": platform.sign(platform.claims(asked["nonce"]))}
    cookies = dict(browser.cookies)
    assert browser.post("/lti/launch", data=form).status_code == 303
    thief = school.client()
    thief.cookies.update(cookies)
    again = thief.post("/lti/launch", data=form)
    assert again.status_code == 403
    assert "used before" in again.text


def test_a_launch_belongs_to_the_browser_in_which_it_began(school: School, platform: TestPlatform) -> None:
    """A token of somebody else's, or one that was sent to somebody, signs nobody in."""
    victim, attacker = school.client(), school.client()
    asked = begin(attacker, platform)
    token = platform.sign(platform.claims(asked["nonce"]))
    for state in ("", "made-up", asked["state"]):
        answer = victim.post("/lti/launch", data={"state": state, "id_token": token})
        assert answer.status_code == 403
        assert "session" not in victim.cookies


def test_two_tabs_launch_side_by_side(school: School, platform: TestPlatform) -> None:
    browser = school.client()
    first, second = begin(browser, platform), begin(browser, platform)
    for asked in (first, second):
        form = {"state": asked["state"], "id_token": platform.sign(platform.claims(asked["nonce"]))}
        assert browser.post("/lti/launch", data=form).status_code == 303


def test_a_platform_is_asked_for_what_the_specification_says(school: School, platform: TestPlatform) -> None:
    browser = school.client()
    asked = begin(browser, platform)
    assert asked | {"state": "", "nonce": ""} == {
        "scope": "openid",
        "response_type": "id_token",
        "response_mode": "form_post",
        "prompt": "none",
        "client_id": CLIENT_ID,
        "redirect_uri": "http://testserver/lti/launch",
        "login_hint": "hint",
        "lti_message_hint": "message",
        "state": "",
        "nonce": "",
    }
    by_form = browser.post("/lti/login", data=platform.login())
    assert by_form.status_code == 303


@pytest.mark.parametrize(
    "said", [{"iss": "https://nobody.example"}, {"client_id": "other"}, {"login_hint": ""}]
)
def test_an_unknown_platform_is_told_so(said: dict[str, str], school: School, platform: TestPlatform) -> None:
    answer = school.client().get(address("/lti/login", **platform.login(**said)))
    assert answer.status_code in (400, 403)
    assert "location" not in answer.headers


def test_by_https_the_cookie_comes_along_from_other_sites_and_into_frames(
    school: School, platform: TestPlatform
) -> None:
    browser = school.client()
    browser.base_url = "https://testserver"
    answer = browser.get(address("/lti/login", **platform.login()))
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("__Host-lti-")
    for wanted in ("Secure", "HttpOnly", "SameSite=None", "Partitioned", "Path=/"):
        assert wanted in cookie


def test_an_instructor_joins_their_account_and_connects_the_course(
    school: School, platform: TestPlatform
) -> None:
    (context,) = contexts_of(school.store, school.course)
    assert context.facts.title == "Parallel programming"
    assert context.platform == "Test Moodle"
    # From now on the platform alone opens the account, and asks nothing.
    page = come(school, platform, "t1", "Instructor")[1]
    assert page.url.path == f"/courses/{school.course}"
    assert "Ines" in page.text


def test_an_instructor_without_an_account_gets_one_and_may_make_a_course_if_allowed(
    school: School, platform: TestPlatform
) -> None:
    set_terms(school, platform, make_courses=True)
    browser, page = come(school, platform, "t9", "Instructor", **elsewhere("biology"))
    assert "for the first time" in page.text
    form = {"csrf": fields(page)["csrf"], "account": "new"}
    page = arrive(browser, browser.post("/lti/continue/account", data=form))
    assert 'value="new"' in page.text
    assert f'value="{school.course}"' not in page.text, "a course that they do not teach is offered"
    other = browser.post(
        "/lti/continue/course", data={"csrf": fields(page)["csrf"], "course": str(school.course)}
    )
    assert other.status_code == 422
    assert len(contexts_of(school.store, school.course)) == 1
    page = arrive(
        browser, browser.post("/lti/continue/course", data={"csrf": fields(page)["csrf"], "course": "new"})
    )
    assert "Biology" in page.text
    made = people.account_by_login(school.store, "person-t9")
    assert made is not None
    assert made.role is Role.LEARNER, "a platform makes nobody more than that on the site"
    (own,) = own_courses.courses_of(school.store, made.id)
    assert own.role is Role.INSTRUCTOR


def test_without_leave_no_course_is_made(school: School, platform: TestPlatform) -> None:
    browser, page = come(school, platform, "t8", "Instructor", **elsewhere("physics"))
    page = arrive(
        browser, browser.post("/lti/continue/account", data={"csrf": fields(page)["csrf"], "account": "new"})
    )
    assert "You teach no course here yet" in page.text
    csrf = browser.get("/account").text.split('name="csrf" value="')[1].split('"')[0]
    assert browser.post("/lti/continue/course", data={"csrf": csrf, "course": "new"}).status_code == 422


def test_a_learner_comes_in_with_an_account_of_their_own(school: School, platform: TestPlatform) -> None:
    browser, page = come(school, platform, "l1")
    assert page.url.path == f"/courses/{school.course}"
    found = people.account_by_login(school.store, "person-l1")
    assert found is not None
    assert (found.role, found.name) == (Role.LEARNER, "Person l1")
    assert roles(school)["person-l1"] is Role.LEARNER
    assert browser.get(f"/courses/{school.course}/gradebook").status_code == 404
    # Again, and it is the same account.
    come(school, platform, "l1")
    with school.store.read() as connection:
        owners = connection.execute(
            select(PersonRow.login).join(IdentityRow).where(IdentityRow.subject == "l1")
        ).scalars()
        assert list(owners) == ["person-l1"]
    box = mailbox(school.store, found.id)
    assert box is not None
    assert box.language == "en", "that of the page"


@pytest.mark.parametrize(
    ("told", "role"),
    [
        ([f"{ROLE}Learner"], Role.LEARNER),
        (["Learner"], Role.LEARNER),
        ([f"{ROLE}Instructor"], Role.INSTRUCTOR),
        (
            [
                f"{ROLE}Instructor",
                "http://purl.imsglobal.org/vocab/lis/v2/membership/Instructor#TeachingAssistant",
            ],
            Role.ASSISTANT,
        ),
        ([f"{ROLE}Mentor"], None),
        ([f"{ROLE}Mentor", f"{ROLE}Learner"], Role.LEARNER),
        (["http://purl.imsglobal.org/vocab/lis/v2/system/person#Administrator"], Role.LEARNER),
        (["http://purl.imsglobal.org/vocab/lis/v2/institution/person#Instructor"], Role.LEARNER),
        ([], Role.LEARNER),
    ],
)
def test_what_somebody_is_in_the_course_there_they_are_here(told: list[str], role: Role | None) -> None:
    assert course_role(told) is role


def test_staff_keeps_the_last_word_on_roles(school: School, platform: TestPlatform) -> None:
    come(school, platform, "l2")
    _, page = come(school, platform, "l2", "Instructor")
    assert page.status_code == 200
    assert roles(school)["person-l2"] is Role.LEARNER


def test_a_mentor_is_let_in_by_staff_alone(school: School, platform: TestPlatform) -> None:
    _, page = come(school, platform, "m1", "Mentor")
    assert page.status_code == 403
    assert "person-m1" not in roles(school)


def test_before_the_course_is_connected_learners_are_told_so(school: School, platform: TestPlatform) -> None:
    _, page = come(school, platform, "u1", **elsewhere("chemistry"))
    assert "has not connected" in page.text


def test_an_account_of_the_same_address_is_taken_only_where_that_is_allowed(
    school: School, platform: TestPlatform
) -> None:
    set_address(school, "anna", "anna@school.example")
    come(school, platform, "l3", email="Anna@school.example")
    assert roles(school)["person-l3"] is Role.LEARNER, "the account of the address was taken without leave"
    set_terms(school, platform, link_by_address=True)
    browser, page = come(school, platform, "l4", email="Anna@school.example")
    assert "Anna" in page.text
    assert "person-l4" not in roles(school)
    assert browser.get("/account").text.count("anna")


def test_no_address_opens_an_account_of_staff(school: School, platform: TestPlatform) -> None:
    set_terms(school, platform, link_by_address=True)
    for login in ("ines", "ada", "otto"):
        set_address(school, login, f"{login}@school.example")
        browser, page = come(school, platform, f"u-{login}", email=f"{login}@school.example")
        assert login.title() not in page.text
        assert browser.get(f"/courses/{school.course}/gradebook").status_code in (303, 404)


def test_nobody_becomes_an_administrator_by_a_launch(school: School, platform: TestPlatform) -> None:
    """Not by joining their account, and not by having become one since."""
    browser = school.client("ada")
    browser.headers.pop("X-CSRF-Token")
    page = arrive(
        browser, launch(browser, platform, lambda nonce: platform.claims(nonce, "a1", "Instructor"))
    )
    answer = browser.post("/lti/continue/account", data=fields(page) | {"account": "mine"})
    assert answer.status_code == 403
    people.set_role(school.store, school.people["ines"], Role.ADMIN, actor_id=None)
    browser, page = come(school, platform, "t1", "Instructor")
    assert page.status_code == 403
    assert "session" not in browser.cookies
    people.set_role(school.store, school.people["ines"], Role.INSTRUCTOR, actor_id=None)


def test_a_closed_account_stays_closed(school: School, platform: TestPlatform) -> None:
    come(school, platform, "l5")
    found = people.account_by_login(school.store, "person-l5")
    assert found is not None
    set_enabled(school.store, found.id, False, actor_id=school.people["ada"])
    browser, page = come(school, platform, "l5")
    assert page.status_code == 403
    assert "session" not in browser.cookies


def test_a_link_opens_its_task(school: School, platform: TestPlatform) -> None:
    task = f"/courses/{school.course}/tasks/{school.task}"
    link = {f"{CLAIM}resource_link": {"id": "link-9"}}
    by_number = {**link, f"{CLAIM}custom": {"grader_task": str(school.task)}}
    assert come(school, platform, "u1", **by_number)[1].url.path == task
    assert (
        come(school, platform, "u1", **link, **{f"{CLAIM}custom": {"grader_task": "ddp-toy"}})[1].url.path
        == task
    )
    # The link is known by now, whatever its parameters.
    assert come(school, platform, "u2", **link)[1].url.path == task
    # Of another course's tasks it opens none.
    of_another = {
        f"{CLAIM}custom": {"grader_task": str(school.other_task)},
        f"{CLAIM}resource_link": {"id": "link-2"},
    }
    assert come(school, platform, "u1", **of_another)[1].url.path == f"/courses/{school.course}"


def test_in_a_frame_the_launch_begins_anew_in_a_window(school: School, platform: TestPlatform) -> None:
    browser = school.client()
    framed = {"sec-fetch-dest": "iframe"}
    page = browser.get(address("/lti/login", **platform.login()), headers=framed)
    assert page.status_code == 200
    assert "frame-ancestors *" in page.headers["content-security-policy"]
    link = page.text.split('class="button primary" href="')[1].split('"')[0].replace("&amp;", "&")
    assert browser.get(link).headers["location"].startswith(f"{platform.url}/auth?")
    # Whatever else is ours refuses frames.
    assert "frame-ancestors 'none'" in browser.get("/sign-in").headers["content-security-policy"]


def test_a_launch_that_ended_in_a_frame_goes_on_in_a_window_once(
    school: School, platform: TestPlatform
) -> None:
    framed = school.client()
    page = launch(framed, platform, platform.claims, headers={"sec-fetch-dest": "iframe"})
    assert page.status_code == 200
    assert "session" not in framed.cookies
    link = page.text.split('class="button primary" href="')[1].split('"')[0]
    window, late, lured = school.client(), school.client(), school.client()
    assert lured.get(link, headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert arrive(window, window.get(link)).url.path == f"/courses/{school.course}"
    assert late.get(link).status_code == 403
    assert "session" not in late.cookies


def test_a_new_key_is_found_and_one_that_was_withdrawn_is_not(school: School, platform: TestPlatform) -> None:
    platform.calls.clear()
    for _ in range(2):
        come(school, platform, "u1")
    assert platform.calls.count("keys") == 1, "keys are kept"
    forget_keys()
    platform.key, platform.published = rsa_key("k2"), [rsa_key("k2")]
    assert come(school, platform, "u1")[1].status_code == 200
    answer = launch(
        school.client(),
        platform,
        platform.claims,
        sign=lambda claims: platform.sign(claims, rsa_key("k1")),
    )
    assert "does not publish" in answer.text
    platform.key, platform.published = rsa_key("k1"), [rsa_key("k1")]


def test_a_platform_whose_keys_cannot_be_read_is_named(school: School, platform: TestPlatform) -> None:
    platform.faults["keys"] = [Fault(503)]
    browser = school.client()
    answer = launch(browser, platform, platform.claims)
    assert "answered 503" in answer.text
    assert "session" not in browser.cookies
    asked = platform.calls.count("keys")
    for _ in range(3):
        launch(browser, platform, platform.claims)
    assert platform.calls.count("keys") == asked, "a platform that is down is asked over and over"


def test_a_platform_that_was_switched_off_launches_nobody(school: School, platform: TestPlatform) -> None:
    browser = school.client()
    asked = begin(browser, platform)
    known = set_terms(school, platform)
    lti_platforms.set_platform_enabled(school.store, known, False, actor_id=school.people["ada"])
    form = {"state": asked["state"], "id_token": platform.sign(platform.claims(asked["nonce"]))}
    assert "switched off" in browser.post("/lti/launch", data=form).text
    assert browser.get(address("/lti/login", **platform.login())).status_code == 403
    lti_platforms.set_platform_enabled(school.store, known, True, actor_id=school.people["ada"])


def test_our_keys_are_published_without_what_is_secret(school: School) -> None:
    (key,) = school.client().get("/lti/keys").json()["keys"]
    assert set(key) == {"kty", "n", "e", "use", "alg", "kid"}
    signed = school.service.tool_keys.sign({"iss": "us"})
    assert jws.extract_compact(signed.encode()).headers()["kid"] == key["kid"]
