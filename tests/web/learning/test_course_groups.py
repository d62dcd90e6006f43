"""Groups, leaderboards, forum and audit of a course, as people come to them by their pages."""

from __future__ import annotations

import csv
import io
import json

from grader.model.grade import Verdict
from grader.store.courses import enrolments
from grader.store.courses.enrolment_details import set_section
from grader.store.courses.grading_rules import GradingRules, TaskGrading, set_grading_rules, set_task_grading
from grader.store.courses.learner_groups import groups_of
from grader.store.people import invitations, people
from grader.store.tables.person import Role
from tests.store.campus import verdict_of
from tests.web.conftest import School
from tests.web.told_outcomes import words


def test_members_of_a_group_see_each_others_attempts_and_nobody_else_does(school: School) -> None:
    ines, at = school.client("ines"), f"/courses/{school.course}"
    before = school.judge("anna")
    listed = {"text": "login,group\nanna,Blue\nben,Blue\n"}
    assert ines.post(f"{at}/groups/list", data=listed).status_code == 303
    attempt = school.judge("anna")
    ben, robot = school.client("ben"), school.client("robot")
    assert ben.get(f"/attempts/{attempt}").status_code == 200
    assert ben.get(f"/api/v1/attempts/{attempt}").status_code == 200
    assert ben.get(f"/attempts/{before}").status_code == 404, "they were no group then"
    assert robot.get(f"/attempts/{attempt}").status_code == 404
    assert f'href="/attempts/{attempt}"' in ben.get(f"{at}/tasks/{school.task}").text
    assert "which counts for Anna, Ben" in words(ines.get(f"/attempts/{attempt}").text)
    (group,) = groups_of(school.store, school.course)
    taken_out = f"{at}/groups/{group.id}/members/{school.people['ben']}/remove"
    assert ines.post(taken_out).status_code == 303
    assert ben.get(f"/attempts/{attempt}").status_code == 200, "they keep what they have"
    assert "Dissolve Blue?" in ines.post(f"{at}/groups/{group.id}/dissolve").text
    ines.post(f"{at}/groups/{group.id}/dissolve", data={"confirmed": "yes"})
    assert groups_of(school.store, school.course) == ()


def test_a_bad_list_changes_nothing_and_says_where_it_is_bad(school: School) -> None:
    ines, at = school.client("ines"), f"/courses/{school.course}"
    for text, said in (
        ("anna,Blue\n", "has to name the columns"),
        ("login,group\nanna,Blue\nanna,Red\n", "line 3: anna is in two groups"),
        ("login,group\nanna,\n", "line 2 has no group"),
        ("login,group\nolga,Blue\n", "olga"),
    ):
        answer = ines.post(f"{at}/groups/list", data={"text": text})
        assert (answer.status_code, said in words(answer.text)) == (422, True), said
    assert groups_of(school.store, school.course) == ()


def test_learners_find_together_by_a_code(school: School) -> None:
    rules = GradingRules(forms_groups=True, group_size=2)
    set_grading_rules(school.store, school.course, rules, actor_id=school.people["ines"])
    anna, ben, place = school.client("anna"), school.client("ben"), f"/courses/{school.course}/group"
    assert place in anna.get(f"/courses/{school.course}").text
    assert anna.post(place, data={"name": "Red"}).status_code == 303
    (group,) = groups_of(school.store, school.course)
    assert group.join_code in anna.get(place).text
    assert ben.post(f"{place}/join", data={"code": "00000000"}).status_code == 422
    assert ben.post(f"{place}/join", data={"code": group.join_code}).status_code == 303
    assert "Anna" in ben.get(place).text
    assert "Leave your group?" in ben.post(f"{place}/leave").text
    assert ben.post(f"{place}/leave", data={"confirmed": "yes"}).status_code == 303
    assert school.client("olga").get(place).status_code == 404


def test_a_leaderboard_shows_those_who_want_it_and_ties_share_a_place(school: School) -> None:
    names = {"anna": "Owl", "ben": "", "cleo": "Fox", "dora": "Elk"}
    for login in ("cleo", "dora"):
        school.people[login] = people.add_person(school.store, login, login.title(), Role.LEARNER)
        enrolments.enrol(school.store, school.course, school.people[login])
    place = f"/courses/{school.course}/tasks/{school.task}/leaderboard"
    assert school.client("anna").get(place).status_code == 303, "the task has none"
    set_task_grading(
        school.store,
        school.course,
        school.task,
        TaskGrading(leaderboard="points"),
        actor_id=school.people["ines"],
    )
    for (login, name), points in zip(names.items(), (90, 95, 90, 80), strict=True):
        school.judge(login, grade=verdict_of(points=points))
        if name:
            assert school.client(login).post(place, data={"name": name}).status_code == 303
    text = words(school.client("ben").get(place).text)
    assert "1 Fox 90 1 Owl 90 3 Elk 80" in text
    assert "Ben" not in text.partition("How you are seen")[0].replace("Ben Sign out", "")
    assert "Yours is number 1, with 95." in text
    assert school.client("ben").post(place, data={"name": "owl"}).status_code == 422, "it is taken"
    assert "Owl you" in words(school.client("anna").get(place).text)
    school.client("anna").post(place, data={"name": ""})
    assert "Owl" not in school.client("cleo").get(place).text
    assert school.client("olga").get(place).status_code == 404


def test_a_leaderboard_tells_nothing_that_is_hidden_until_the_due_date(school: School) -> None:
    from datetime import UTC, datetime, timedelta

    from grader.store.courses import courses
    from grader.store.courses.courses import TaskTerms, course_task

    task = course_task(school.store, school.task)
    assert task is not None
    due = datetime.now(UTC) + timedelta(days=1)
    terms = TaskTerms(task.terms.title, task.terms.version, due_at=due, hidden_until_due=True)
    courses.set_task(school.store, school.course, task.task, task.profile, terms)
    set_task_grading(
        school.store,
        school.course,
        school.task,
        TaskGrading(leaderboard="points"),
        actor_id=school.people["ines"],
    )
    place = f"/courses/{school.course}/tasks/{school.task}/leaderboard"
    school.judge("anna", grade=verdict_of(points=76.25))
    anna = school.client("anna")
    anna.post(place, data={"name": "Owl"})
    for login in ("anna", "ben", "ines"):
        assert "76.25" not in school.client(login).get(place).text.partition("<main")[2], login


def test_the_forum_is_an_https_address_in_everybodys_way(school: School) -> None:
    ines, at = school.client("ines"), f"/courses/{school.course}"
    for bad in ("http://talk.example.org", "javascript:alert(1)", "https://"):
        assert ines.post(f"{at}/grading", data={"forum_url": bad}).status_code == 422
    assert ines.post(f"{at}/grading", data={"forum_url": "https://talk.example.org/c/1"}).status_code == 303
    for login in ("anna", "ines"):
        assert 'href="https://talk.example.org/c/1"' in school.client(login).get(at).text


def test_the_audit_folds_a_class_filters_and_leaves_as_a_file(school: School) -> None:
    actor = school.people["ines"]
    for number in range(300):
        person = people.add_person(school.store, f"p{number}", f"P {number}", Role.LEARNER)
        enrolments.enrol(school.store, school.course, person, actor_id=actor)
    invitations.invite(school.store, school.course, actor_id=actor)
    ines, at = school.client("ines"), f"/courses/{school.course}/audit"
    page = words(ines.get(at).text)
    assert "enrolled × 300" in page
    assert "course added" in page, "they hide nothing"
    each = ines.get(f"{at}?kind=enrolled").text
    assert each.count('<th scope="row">enrolled') == 100
    (older,) = {one for one in each.split('"') if "before=" in one}
    assert ines.get(older.replace("&amp;", "&")).text.count('<th scope="row">enrolled') == 100
    assert "enrolled × 300" not in words(ines.get(f"{at}?person={school.people['anna']}").text)
    assert words(ines.get(f"{at}?person={school.people['anna']}").text).count("enrolled Ada") <= 1
    assert "Nothing matches" in ines.get(f"{at}?until=2001-01-01").text
    assert "enrolled × 300" in words(ines.get(f"{at}?since=2001-01-01&until=nonsense").text)
    rows = list(csv.DictReader(io.StringIO(ines.get(f"{at}.csv?kind=enrolled").content.decode("utf-8-sig"))))
    assert len(rows) > 300
    assert {row["actor"] for row in rows if row["person"].startswith("P ")} == {"Ines"}
    events = json.loads(ines.get(f"{at}.json?person={actor}").text)["events"]
    assert len(events) > 300
    assert school.client("anna").get(f"{at}.csv").status_code == 404


def test_an_assistant_is_shown_what_counts_for_anybody_of_their_section(school: School) -> None:
    for login, section in (("anna", "A"), ("ben", "B")):
        set_section(school.store, school.course, [school.people[login]], section, actor_id=None)
    school.join("tess", Role.ASSISTANT, section="A")
    ines, tess, at = school.client("ines"), school.client("tess"), f"/courses/{school.course}"
    alone = school.judge("ben")
    ines.post(f"{at}/groups/list", data={"text": "login,group\nanna,Blue\nben,Blue\n"})
    shared = school.judge("ben", grade=verdict_of(Verdict.HELD))
    assert tess.get(f"/attempts/{shared}").status_code == 200
    assert tess.get(f"/attempts/{alone}").status_code == 404
    for page in (f"{at}/attempts", f"{at}/review"):
        text = tess.get(page).text
        assert f"/attempts/{shared}" in text, page
        assert f"/attempts/{alone}" not in text, page
    decided = {"decision": "accept", "remark": "fine"}
    assert tess.post(f"/attempts/{shared}/decide", data=decided).status_code == 303
    assert tess.post(f"/attempts/{alone}/comment", data={"text": "Not mine"}).status_code == 404
