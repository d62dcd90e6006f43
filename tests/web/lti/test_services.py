"""Grades and people between the grader and a learning platform, which is down, slow, lying, or answers twice."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from joserfc import jwt
from sqlalchemy import update

from grader.lti.launch_message import CLAIM, DEEP_LINKING, GRADES, ROSTER
from grader.model.grade import Verdict
from grader.store.clock import database_now
from grader.store.courses import enrolments
from grader.store.delivery import deliveries
from grader.store.delivery.deliveries import LoggedDelivery
from grader.store.grading import reviews
from grader.store.lti import lti_contexts, lti_platforms, lti_rosters
from grader.store.lti.lti_contexts import ContextFacts
from grader.store.lti.lti_platforms import PlatformTerms
from grader.store.lti.lti_rosters import RosterMember
from grader.store.lti.lti_scores import CHANNEL
from grader.store.people import people
from grader.store.people.identities import link
from grader.store.tables import CourseTaskRow, DeliveryRow
from grader.store.tables.delivery import DeliveryState
from grader.store.tables.person import Role
from tests.store.campus import verdict_of
from tests.web.conftest import School
from tests.web.learning_platform import ROLE, SCOPES, Fault, TestPlatform
from tests.web.lti_visits import add_platform, come, deliver, fields, launch, platform_of


@pytest.fixture
def platform(school: School) -> Iterator[TestPlatform]:
    """A platform that one of the school's courses is connected to."""
    with platform_of(school) as made:
        made.members = [member("t1", "Instructor"), member("u1")]
        terms = PlatformTerms(**made.terms())
        known = add_platform(school, made)
        link(school.store, school.people["ines"], lti_rosters.identity_of(terms, "t1", "Ines", None))
        place = ("1", "course-7", "Parallel programming")
        facts = ContextFacts(known, *place, f"{made.url}/members", f"{made.url}/items", tuple(SCOPES[:2]))
        lti_contexts.connect(school.store, facts, school.course, actor_id=school.people["ines"])
        yield made


def member(subject: str, role: str = "Learner", **more: Any) -> dict[str, Any]:
    """Somebody on the platform's list."""
    return {
        "user_id": subject,
        "name": f"Person {subject}",
        "email": f"{subject}@school.example",
        "roles": [f"{ROLE}{role}"],
        "status": "Active",
        **more,
    }


def arrive_learner(school: School, platform: TestPlatform, subject: str = "u1") -> int:
    """A learner of the platform's course comes; their account."""
    (context,) = lti_contexts.contexts_of(school.store, school.course)
    listed = RosterMember(subject, f"Person {subject}", None, Role.LEARNER, None)
    lti_rosters.take_roster(school.store, context, PlatformTerms(**platform.terms()), [listed])
    found = people.account_by_login(school.store, f"person-{subject}")
    assert found is not None
    school.people[found.login] = found.id
    return found.id


def log(school: School) -> list[LoggedDelivery]:
    return list(deliveries.deliveries_of(school.store, school.course, CHANNEL))


def make_due(school: School) -> None:
    """Let time pass until everything that waits is tried again."""
    with school.store.write() as connection:
        connection.execute(
            update(DeliveryRow)
            .where(DeliveryRow.state == DeliveryState.WAITING)
            .values(due_at=database_now())
        )


def roles(school: School) -> dict[str, Role]:
    return {one.login: one.role for one in enrolments.participants(school.store, school.course)}


def test_what_the_gradebook_shows_is_what_the_platform_has(school: School, platform: TestPlatform) -> None:
    """Judged, held, decided, withdrawn: each time the number there is the number here."""
    arrive_learner(school, platform)
    school.judge("person-u1", grade=verdict_of(Verdict.REJECTED, 40.0))
    deliver(school)
    (first,) = platform.told("u1")
    assert (first["scoreGiven"], first["scoreMaximum"]) == (40.0, 100.0)
    assert (first["activityProgress"], first["gradingProgress"]) == ("Completed", "FullyGraded")
    (column,) = platform.line_items.values()
    assert column["label"]
    assert column["scoreMaximum"] == 100
    better = school.judge("person-u1", grade=verdict_of(Verdict.ACCEPTED, 90.0))
    deliver(school)
    assert platform.told("u1")[-1]["scoreGiven"] == 90.0
    reviews.override(school.store, better, Verdict.ACCEPTED, 95.0, "read it", actor_id=school.people["ines"])
    deliver(school)
    assert platform.told("u1")[-1]["scoreGiven"] == 95.0
    reviews.withdraw_override(school.store, better, actor_id=school.people["ines"])
    deliver(school)
    said = platform.told("u1")
    assert said[-1]["scoreGiven"] == 90.0
    stamps = [one["timestamp"] for one in said]
    assert stamps == sorted(set(stamps)), "times do not rise"
    assert len(platform.line_items) == 1
    assert platform.calls.count("token") <= 2 * len(stamps)


def test_what_is_held_waits_for_a_person(school: School, platform: TestPlatform) -> None:
    arrive_learner(school, platform)
    school.judge("person-u1", grade=verdict_of(Verdict.HELD, 80.0))
    deliver(school)
    (said,) = platform.told("u1")
    assert said["gradingProgress"] == "PendingManual"
    assert "scoreGiven" not in said


def test_who_did_not_come_by_the_platform_is_not_told_of(school: School, platform: TestPlatform) -> None:
    school.judge("anna")
    assert not log(school)


def test_grades_from_before_are_told_when_somebody_comes(school: School, platform: TestPlatform) -> None:
    person = arrive_learner(school, platform)
    enrolments.leave(school.store, school.course, person, actor_id=None)
    enrolments.enrol(school.store, school.course, person)
    (context,) = lti_contexts.contexts_of(school.store, school.course)
    lti_contexts.disconnect(school.store, context.id, actor_id=school.people["ines"])
    school.judge("person-u1", grade=verdict_of(Verdict.ACCEPTED, 77.0))
    assert not log(school)
    lti_contexts.connect(school.store, context.facts, school.course, actor_id=school.people["ines"])
    arrive_learner(school, platform)
    deliver(school)
    assert platform.told("u1")[-1]["scoreGiven"] == 77.0


def test_what_is_hidden_until_it_is_due_is_not_told_before(school: School, platform: TestPlatform) -> None:
    arrive_learner(school, platform)
    due = datetime.now(UTC) + timedelta(days=30)
    with school.store.write() as connection:
        connection.execute(
            update(CourseTaskRow)
            .where(CourseTaskRow.id == school.task)
            .values(hidden_until_due=True, due_at=due)
        )
    school.judge("person-u1")
    deliver(school)
    assert not platform.told("u1")
    (waiting,) = log(school)
    assert waiting.state is DeliveryState.WAITING
    # Dates move and results are released: it is looked at again within the hour.
    assert datetime.now(UTC) < waiting.due_at <= datetime.now(UTC) + timedelta(hours=1)
    with school.store.write() as connection:
        connection.execute(
            update(CourseTaskRow)
            .where(CourseTaskRow.id == school.task)
            .values(due_at=datetime.now(UTC) - timedelta(seconds=1))
        )
    make_due(school)
    deliver(school)
    assert len(platform.told("u1")) == 1


FAULTS = {
    "down": ("scores", Fault(503)),
    "in a hurry": ("scores", Fault(429, headers={"retry-after": "1800"})),
    "broken": ("scores", Fault(500)),
    "leading elsewhere": ("scores", Fault(302, headers={"location": "http://127.0.0.1:1/"})),
    "without a token": ("token", Fault(500)),
    "with a key of ours that it does not know yet": ("token", Fault(400)),
    "taking it and saying no": ("scores", Fault(500, after=True)),
}


def test_whatever_the_platform_does_grades_arrive_once_it_is_well(
    school: School, platform: TestPlatform
) -> None:
    arrive_learner(school, platform)
    for number, (what, (service, fault)) in enumerate(FAULTS.items(), start=1):
        platform.faults[service] = [fault]
        school.judge("person-u1", grade=verdict_of(Verdict.ACCEPTED, 50.0 + number))
        deliver(school)
        if log(school)[0].state is DeliveryState.WAITING:
            assert log(school)[0].due_at > datetime.now(UTC) + timedelta(seconds=30), what
        make_due(school)
        deliver(school)
        assert log(school)[0].state is DeliveryState.DELIVERED, (what, log(school)[0])
        assert platform.told("u1")[-1]["scoreGiven"] == 50.0 + number, what
    (column,) = platform.line_items
    stamps = [one["timestamp"] for one in platform.scores[column]]
    assert stamps == sorted(set(stamps))


def test_a_column_whose_making_was_not_told_is_found(school: School, platform: TestPlatform) -> None:
    arrive_learner(school, platform)
    platform.faults["items"] = [Fault(502, after=True)]
    school.judge("person-u1", grade=verdict_of(Verdict.ACCEPTED, 70.0))
    deliver(school)
    make_due(school)
    deliver(school)
    assert len(platform.line_items) == 1
    assert [one["scoreGiven"] for one in platform.told("u1")] == [70.0]


def test_what_the_platform_will_never_take_is_shown_and_can_be_sent_again(
    school: School, platform: TestPlatform
) -> None:
    arrive_learner(school, platform)
    platform.faults["scores"] = [Fault(422)]
    school.judge("person-u1", grade=verdict_of(Verdict.ACCEPTED, 66.0))
    deliver(school)
    (failed,) = log(school)
    assert failed.state is DeliveryState.GIVEN_UP
    browser = school.client("ines")
    at = f"/courses/{school.course}/platform"
    page = browser.get(f"{at}?state=given_up").text
    assert "Person u1" in page
    assert "answered 422: broken" in page
    assert "token-" not in page
    assert browser.post(f"{at}/grades/{failed.id}").status_code == 303
    deliver(school)
    assert platform.told("u1")[-1]["scoreGiven"] == 66.0
    assert "arrived" in browser.get(at).text
    # Of another course's deliveries nobody sends any.
    other = school.client("otto").post(f"/courses/{school.other_course}/platform/grades/{failed.id}")
    assert (
        "on its way" in school.client("otto").get(other.headers["location"]).text or other.status_code == 303
    )
    assert browser.post(f"{at}/grades").status_code == 303
    deliver(school)
    assert len(platform.told("u1")) == 2


def test_an_old_message_never_undoes_a_newer_grade(school: School, platform: TestPlatform) -> None:
    """Two messages wait; the first one that arrives says what holds now, and so does the other."""
    arrive_learner(school, platform)
    platform.faults["scores"] = [Fault(503)]
    school.judge("person-u1", grade=verdict_of(Verdict.REJECTED, 10.0))
    deliver(school)
    school.judge("person-u1", grade=verdict_of(Verdict.ACCEPTED, 88.0))
    make_due(school)
    deliver(school)
    assert {one["scoreGiven"] for one in platform.told("u1")} == {88.0}
    assert {one.state for one in log(school)} == {DeliveryState.DELIVERED}


def test_a_column_that_was_deleted_there_is_made_again(school: School, platform: TestPlatform) -> None:
    arrive_learner(school, platform)
    school.judge("person-u1", grade=verdict_of(Verdict.REJECTED, 10.0))
    deliver(school)
    platform.line_items.clear()
    platform.scores.clear()
    school.judge("person-u1", grade=verdict_of(Verdict.ACCEPTED, 88.0))
    deliver(school)
    make_due(school)
    deliver(school)
    assert [one["scoreGiven"] for one in platform.told("u1")] == [88.0]


def test_the_column_of_a_link_is_used(school: School, platform: TestPlatform) -> None:
    """The platform made one with the link; no second one is made, and none need be allowed."""
    column = platform.add_item({"label": "The link's own", "scoreMaximum": 10})
    grades = {GRADES: {"scope": [SCOPES[1]], "lineitem": column["id"]}}
    come(school, platform, "u1", **grades, **{f"{CLAIM}custom": {"grader_task": "ddp-toy"}})
    school.people["person-u1"] = getattr(people.account_by_login(school.store, "person-u1"), "id", 0)
    school.judge("person-u1", grade=verdict_of(Verdict.ACCEPTED, 88.0))
    deliver(school)
    assert list(platform.line_items) == ["1"]
    assert [one["scoreGiven"] for one in platform.scores["1"]] == [88.0]


def test_a_platform_that_was_off_hears_what_it_missed(school: School, platform: TestPlatform) -> None:
    arrive_learner(school, platform)
    (known,) = lti_platforms.platforms(school.store)
    admin = school.client("ada")
    assert admin.post(f"/admin/platforms/{known.id}/enabled", data={"enabled": "no"}).status_code == 303
    school.judge("person-u1", grade=verdict_of(Verdict.ACCEPTED, 88.0))
    deliver(school)
    assert not platform.told("u1")
    assert admin.post(f"/admin/platforms/{known.id}/enabled", data={"enabled": "yes"}).status_code == 303
    deliver(school)
    assert platform.told("u1")[-1]["scoreGiven"] == 88.0


def test_a_list_of_people_comes_in_page_by_page(school: School, platform: TestPlatform) -> None:
    deliver(school)
    platform.members = [
        member("t1", "Instructor"),
        *(member(f"r{number}", lis_person_sourcedid=f"s-{number}") for number in range(5)),
        member("a1", "Instructor#TeachingAssistant"),
        member("m1", "Mentor"),
        member("gone", status="Inactive"),
    ]
    platform.members[6]["roles"] = [
        "http://purl.imsglobal.org/vocab/lis/v2/membership/Instructor#TeachingAssistant"
    ]
    platform.calls.clear()
    read_list(school)
    assert platform.calls.count("members") == 5
    found = roles(school)
    assert {f"person-r{number}" for number in range(5)} <= set(found)
    assert found["person-a1"] is Role.ASSISTANT
    assert "person-m1" not in found
    assert "person-gone" not in found
    assert found["ines"] is Role.INSTRUCTOR
    before = found
    read_list(school)
    assert roles(school) == before, "a second time changes something"
    page = school.client("ines").get(f"/courses/{school.course}/platform").text
    assert "1 on it is not let in" in page
    # Every day anew, by itself.
    waiting = deliveries.deliveries_of(
        school.store, school.course, lti_rosters.CHANNEL, state=DeliveryState.WAITING
    )
    assert len(waiting) == 1
    assert timedelta(hours=23) < waiting[0].due_at - datetime.now(UTC) < timedelta(hours=25)


def read_list(school: School) -> None:
    (context,) = lti_contexts.contexts_of(school.store, school.course)
    with school.store.write() as connection:
        connection.execute(
            DeliveryRow.__table__.delete().where(DeliveryRow.channel == lti_rosters.CHANNEL)  # type: ignore[attr-defined]
        )
    answer = school.client("ines").post(f"/courses/{school.course}/platform/{context.id}/roster")
    assert answer.status_code == 303
    deliver(school)


def test_who_left_takes_part_until_staff_says_otherwise(school: School, platform: TestPlatform) -> None:
    platform.members = [member("t1", "Instructor"), member("u1"), member("u2")]
    read_list(school)
    platform.members.pop()
    read_list(school)
    assert "person-u2" in roles(school)
    browser, at = school.client("ines"), f"/courses/{school.course}/platform"
    person = people.account_by_login(school.store, "person-u2")
    assert person is not None
    assert "person-u2" in browser.get(at).text
    asked = browser.post(f"{at}/left", data={"person": str(person.id)})
    assert "End the part of 1 person?" in asked.text
    assert "person-u2" in roles(school)
    # Anna never came by the platform: she is not ended by that page.
    anna = str(school.people["anna"])
    browser.post(f"{at}/left", data={"person": [str(person.id), anna], "confirmed": "yes"})
    assert "person-u2" not in roles(school)
    assert "anna" in roles(school)


def test_a_list_that_cannot_be_read_changes_nothing(school: School, platform: TestPlatform) -> None:
    platform.members = [member("t1", "Instructor"), member("u1"), member("u2"), member("u3")]
    read_list(school)
    before = roles(school)
    lies: list[tuple[list[dict[str, Any]], list[Fault]]] = [
        ([], []),
        ([member("t1"), member("x1"), member("x2")], [Fault(200, times=0), Fault(500)]),
        ([{"nobody": 1}], []),
        (platform.members, [Fault(403)]),
    ]
    for members, faults in lies:
        platform.members = members
        platform.faults["members"] = [one for one in faults if one.times]
        read_list(school)
        assert roles(school) == before
        page = school.client("ines").get(f"/courses/{school.course}/platform").text
        assert "The last try failed" in page
        assert "Not on the list any more" not in page


def test_tasks_are_chosen_in_the_platforms_frame(school: School, platform: TestPlatform) -> None:
    browser = school.client()
    page = launch(browser, platform, platform.deep_linking, headers={"sec-fetch-dest": "iframe"})
    assert page.status_code == 200
    assert "frame-ancestors *" in page.headers["content-security-policy"]
    form = fields(page) | {"task": [str(one) for one in school.tasks.values()]}
    nothing = browser.post("/lti/deep-linking", data=fields(page))
    assert "Choose a task" in nothing.text
    framed = school.client()
    answer = framed.post("/lti/deep-linking", data=form)
    assert f"form-action 'self' {platform.url}" in answer.headers["content-security-policy"]
    assert f'action="{platform.url}/chosen"' in answer.text
    signed = jwt.decode(fields(answer)["JWT"], school.service.tool_keys.keys[0], algorithms=["RS256"]).claims
    assert (signed["iss"], signed["aud"]) == ("grader-client", platform.url)
    assert signed[f"{CLAIM}message_type"] == "LtiDeepLinkingResponse"
    assert signed[f"{CLAIM}version"] == "1.3.0"
    assert signed[f"{CLAIM}deployment_id"] == "1"
    assert signed[f"{DEEP_LINKING}data"] == "back-to-you"
    items = signed[f"{DEEP_LINKING}content_items"]
    assert [one["custom"]["grader_task"] for one in items] == [str(one) for one in school.tasks.values()]
    assert all(one["type"] == "ltiResourceLink" for one in items)
    assert all(one["lineItem"]["scoreMaximum"] == 100 for one in items)
    # The link leads to the task, as the platform would launch it.
    custom = {f"{CLAIM}custom": items[0]["custom"], f"{CLAIM}resource_link": {"id": "made-by-it"}}
    assert (
        come(school, platform, "u1", **custom)[1].url.path == f"/courses/{school.course}/tasks/{school.task}"
    )


def test_content_is_chosen_by_instructors_alone(school: School, platform: TestPlatform) -> None:
    def as_learner(nonce: str) -> dict[str, Any]:
        return platform.deep_linking(nonce, "u1") | {f"{CLAIM}roles": [f"{ROLE}Learner"]}

    page = launch(school.client(), platform, as_learner)
    assert page.status_code == 403
    # An instructor there who is a learner here, neither.
    come(school, platform, "u5")
    page = launch(school.client(), platform, lambda nonce: platform.deep_linking(nonce, "u5"))
    assert page.status_code == 403
    page = school.client().post("/lti/deep-linking", data={"launch": "made-up", "chosen": "yes", "task": "1"})
    assert page.status_code == 403


def test_before_the_course_is_connected_the_frame_leads_to_a_window(
    school: School, platform: TestPlatform
) -> None:
    other = {f"{CLAIM}context": {"id": "course-8", "title": "New term"}}
    frame, window = school.client(), school.client()

    def asks(nonce: str) -> dict[str, Any]:
        return platform.deep_linking(nonce) | other

    page = launch(frame, platform, asks, headers={"sec-fetch-dest": "iframe"})
    assert "Connect the course first" in page.text
    link = page.text.split('class="button primary" href="')[1].split('"')[0]
    shown = window.get(window.get(link).headers["location"])
    assert "Which course is" in shown.text
    form = {"csrf": fields(shown)["csrf"], "course": str(school.course)}
    done = window.get(window.post("/lti/continue/course", data=form).headers["location"])
    assert "The course is connected" in done.text
    again = frame.post("/lti/deep-linking", data=fields(page))
    assert "Add to the course" in again.text


def test_a_platform_registers_itself_by_a_link_that_holds_once(
    school: School, platform: TestPlatform
) -> None:
    admin = school.client("ada")
    page = admin.post("/admin/platforms/registration").text
    link = page.split('<code class="mono">')[1].split("</code>")[0].removeprefix("http://testserver")
    there = f"{link}&openid_configuration={platform.url}/configuration&registration_token=platform-token"
    frame = school.client()
    asked = frame.get(there)
    assert platform.url in asked.text
    assert not platform.registered, "looking registers nothing"
    platform.faults["register"] = [Fault(500)]
    assert "came to nothing" in frame.post("/lti/register", data=fields(asked)).text
    done = frame.post("/lti/register", data=fields(asked))
    assert "The grader is registered" in done.text, done.text
    (sent,) = platform.registered
    assert sent["redirect_uris"] == ["http://testserver/lti/launch"]
    assert sent["jwks_uri"] == "http://testserver/lti/keys"
    assert sent["token_endpoint_auth_method"] == "private_key_jwt"
    (made,) = [one for one in lti_platforms.platforms(school.store) if one.terms.client_id == "made-for-you"]
    assert made.terms.deployments == ("42",)
    assert made.terms.token_url == f"{platform.url}/token"
    assert not made.terms.link_by_address
    assert frame.post("/lti/register", data=fields(asked)).status_code == 403
    assert frame.get(there).status_code == 403


def test_nobody_registers_for_another_host(school: School, platform: TestPlatform) -> None:
    token = lti_platforms.offer_registration(school.store, actor_id=school.people["ada"])
    real, platform.url = platform.url, "https://accounts.example"
    page = school.client().get(
        f"/lti/register?token={token}&openid_configuration={real}/configuration&registration_token=x"
    )
    platform.url = real
    assert page.status_code == 400
    assert "another host" in page.text


def test_an_administrator_adds_changes_and_deletes_a_platform(school: School, platform: TestPlatform) -> None:
    admin = school.client("ada")
    form = {
        name: value
        for name, value in platform.terms(client_id="by-hand", name="By hand").items()
        if name != "deployments"
    }
    bad = admin.post("/admin/platforms", data=form | {"token_url": "http://elsewhere.example/token"})
    assert bad.status_code == 422
    assert "Over plain http" in bad.text
    place = admin.post("/admin/platforms", data=form | {"deployments": "1\n2\n"}).headers["location"]
    assert admin.post("/admin/platforms", data=form).status_code == 422
    assert admin.post(place, data=form | {"deployments": "3", "make_courses": "on"}).status_code == 303
    found = lti_platforms.platform(school.store, int(place.rpartition("/")[2]))
    assert found is not None
    assert found.terms.deployments == ("3",)
    assert found.terms.make_courses
    # A launch from a place that nobody allowed yet asks for it.
    lti_platforms.note_asked_deployment(school.store, found.id, "9")
    assert "A deployment asks" in admin.get(place).text
    admin.post(f"{place}/deployment", data={"deployment": "8"})
    admin.post(f"{place}/deployment", data={"deployment": "9"})
    changed = lti_platforms.platform(school.store, found.id)
    assert changed is not None
    assert changed.terms.deployments == ("3", "9")
    assert "Delete By hand?" in admin.post(f"{place}/delete").text
    assert lti_platforms.platform(school.store, found.id) is not None
    assert admin.post(f"{place}/delete", data={"confirmed": "yes"}).status_code == 303
    assert lti_platforms.platform(school.store, found.id) is None


def test_a_connection_is_ended_by_its_course_alone(school: School, platform: TestPlatform) -> None:
    (context,) = lti_contexts.contexts_of(school.store, school.course)
    at = f"platform/{context.id}/disconnect"
    yes = {"confirmed": "yes"}
    other = school.client("otto").post(f"/courses/{school.other_course}/{at}", data=yes)
    assert other.status_code == 404
    browser = school.client("ines")
    assert "Disconnect “Parallel programming”?" in browser.post(f"/courses/{school.course}/{at}").text
    assert browser.post(f"/courses/{school.course}/{at}", data=yes).status_code == 303
    assert not lti_contexts.contexts_of(school.store, school.course)
    _, page = come(school, platform, "u1", **{ROSTER: None})
    assert "has not connected" in page.text
