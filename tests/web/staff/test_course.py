"""A course's terms, dates, order and door, the queue's switches and the administrators' pages, by their forms."""

from __future__ import annotations

import html
import re
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from grader.catalog.tasks.task_folders import load_task
from grader.model.grade import Verdict
from grader.settings import in_course, settings
from grader.store.attempts import attempt_endings, submissions
from grader.store.attempts.limits import Refusal
from grader.store.courses import course_life, courses
from grader.store.courses.courses import AssignedTask
from grader.store.courses.task_versions import keep_version
from grader.store.grading import regrades
from grader.store.people import own_courses, people
from grader.store.queue import claims, queue
from grader.store.tables.course_task import LatePolicy
from grader.store.tables.person import Role
from tests.store.campus import script, verdict_of
from tests.web.conftest import PASSWORD, School

FORM = {
    "title": "A toy",
    "weight": "2,5",
    "required": "on",
    "opens_at": "2026-01-01T08:00",
    "due_at": "2026-02-01T18:30",
    "late_policy": "reduced",
    "late_loss": "15",
    "late_days": "3",
    "max_per_day": "10",
    "max_total": "",
    "max_concurrent": "2",
    "hidden_until_due": "on",
}


def task_of(school: School, task_id: int | None = None) -> AssignedTask:
    return next(
        one for one in courses.tasks_of(school.store, school.course) if one.id == (task_id or school.task)
    )


def at(school: School, place: str) -> str:
    return f"/courses/{school.course}/{place}"


def test_terms_are_changed_by_their_form(school: School) -> None:
    before = task_of(school)
    answer = school.client("ines").post(at(school, f"settings/{school.task}"), data=FORM)
    assert answer.status_code == 303
    terms = task_of(school).terms
    assert (terms.title, terms.weight, terms.required, terms.hidden_until_due) == ("A toy", 2.5, True, True)
    assert terms.opens_at == datetime(2026, 1, 1, 8, tzinfo=UTC)
    assert terms.due_at == datetime(2026, 2, 1, 18, 30, tzinfo=UTC)
    assert (terms.late_policy, terms.late_loss, terms.late_days) == (LatePolicy.REDUCED, 0.15, 3)
    assert (terms.max_per_day, terms.max_total, terms.max_concurrent) == (10, None, 2)
    assert (terms.version, terms.need) == (before.terms.version, before.terms.need)


def test_attempts_that_failed_on_our_side_are_told_where_a_course_opens(school: School) -> None:
    def failing(login: str) -> int:
        number = school.hand_in(login)
        lease = claims.claim(school.store, "w1", ("cpu",))
        assert isinstance(lease, claims.Claimed)
        attempt_endings.fail(school.store, number, lease.lease_token, "no space left", retry=False)
        return number

    ines, home = school.client("ines"), f"/courses/{school.course}"
    assert "fault of ours" not in ines.get(home).text
    failing("anna")
    bens = failing("ben")
    told = ines.get(home).text
    assert "2 attempts ended in a fault of ours" in told
    assert f'href="{home}/attempts?state=failed"' in told
    assert f"#{bens}<" in ines.get(f"{home}/attempts?state=failed").text
    assert "fault of ours" not in school.client("anna").get(home).text
    assert "fault of ours" not in school.client("otto").get(f"/courses/{school.other_course}").text
    assert (
        'grader_attempts{state="failed",verdict=""} 2.0'
        in school.client(client=("127.0.0.1", 50000)).get("/metrics").text
    )

    school.judge("anna")
    assert "1 attempt ended in a fault of ours" in ines.get(home).text, "hers was judged since"
    regrades.queue_new_runs(school.store, [bens], actor_id=school.people["ines"])
    lease = claims.claim(school.store, "w1", ("cpu",))
    assert isinstance(lease, claims.Claimed)
    attempt_endings.finish(school.store, lease.attempt_id, lease.lease_token, verdict_of())
    assert "fault of ours" not in ines.get(home).text, "his was judged again"


def test_an_instructor_reads_how_many_of_the_class_are_accepted(school: School) -> None:
    page = f"/courses/{school.course}"
    assert "nothing handed in" in school.client("ines").get(page).text
    school.judge("anna", grade=verdict_of(Verdict.REJECTED, 40))
    school.judge("anna", grade=verdict_of(Verdict.ACCEPTED, 90))
    school.judge("ben", grade=verdict_of(Verdict.REJECTED, 30))
    text = school.client("ines").get(page).text
    assert "1 of 2 accepted" in text
    assert "not begun" not in text
    assert "of 2 accepted" not in school.client("ben").get(page).text


def test_a_form_that_is_sent_back_as_it_came_changes_nothing(school: School) -> None:
    ines, place = school.client("ines"), at(school, f"settings/{school.task}")
    ines.post(place, data=FORM)
    before, text = task_of(school), ines.get(place).text
    fields = dict(
        re.findall(
            r'<input type="(?:text|number|datetime-local)" id="\w+" name="(\w+)" value="([^"]*)"', text
        )
    )
    ticked = dict.fromkeys(re.findall(r'name="(\w+)" value="on" checked', text), "on")
    chosen = dict(re.findall(r'<select id="(late_policy)".*?<option value="(\w+)" selected', text, re.DOTALL))
    assert ines.post(place, data={**fields, **ticked, **chosen}).status_code == 303
    assert task_of(school) == before


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"title": " "}, "A title is needed"),
        ({"weight": "-1"}, "from 0 to 1000"),
        ({"due_at": "2025-12-31T08:00"}, "due before it opens"),
        ({"due_at": "yesterday"}, "Write a date"),
        ({"late_loss": ""}, "How many percent"),
        ({"late_loss": "150"}, "from 0 to 100"),
        ({"max_per_day": "0"}, "whole number from 1"),
        ({"max_total": "2.5"}, "whole number from 1"),
        ({"late_policy": "never"}, "Choose one"),
        ({"due_at": "", "late_policy": "closed"}, "Hidden until when?"),
    ],
)
def test_terms_that_make_no_sense_are_shown_again(school: School, wrong: dict[str, str], told: str) -> None:
    before = task_of(school)
    answer = school.client("ines").post(at(school, f"settings/{school.task}"), data={**FORM, **wrong})
    assert answer.status_code == 422
    assert told in answer.text
    assert task_of(school) == before


def test_a_task_of_another_course_cannot_be_changed_from_here(school: School) -> None:
    ines = school.client("ines")
    for place in ("", "/update", "/regrade"):
        assert ines.post(at(school, f"settings/{school.other_task}{place}"), data=FORM).status_code == 404
    assert (
        ines.post(f"/courses/{school.other_course}/settings/{school.other_task}", data=FORM).status_code
        == 404
    )


def test_tasks_are_reordered_and_added(school: School) -> None:
    ines = school.client("ines")
    first, second = (one.id for one in courses.tasks_of(school.store, school.course))
    ines.post(at(school, "settings/order"), data={"task": str(second), "by": "up"})
    assert [one.id for one in courses.tasks_of(school.store, school.course)] == [second, first]
    ines.post(at(school, "settings/order"), data={"task": str(second), "by": "up"})
    ines.post(at(school, "settings/order"), data={"task": str(school.other_task), "by": "up"})
    assert [one.id for one in courses.tasks_of(school.store, school.course)] == [second, first]
    ines.post(at(school, "settings/add"), data={"task": "assessment/cpu"})
    ines.post(at(school, "settings/add"), data={"task": "../../etc/cpu"})
    assert [one.task for one in courses.tasks_of(school.store, school.course)][2:] == ["assessment"]


def test_an_update_is_tried_on_what_counts_before_it_is_in_force(school: School) -> None:
    task, ines, store = task_of(school), school.client("ines"), school.store
    courses.set_task(store, school.course, task.task, task.profile, courses.TaskTerms("Old", "0" * 64))
    attempt = school.judge("anna", grade=verdict_of(Verdict.REJECTED, 40.0))
    page = at(school, f"settings/{school.task}")
    assert "newer version" in ines.get(at(school, "settings")).text
    assert "No copy of this version was kept" in ines.get(page).text
    told = ines.get(f"{page}/update").text
    assert "what differs cannot be told" in told
    (newer,) = re.findall(r'name="version" value="(\w{64})"', told)

    tried = ines.post(f"{page}/update", data={"version": newer, "how": "try"}).headers["location"]
    assert task_of(school).terms.version == "0" * 64, "nothing is in force"
    claimed = claims.claim(store, "w1", ("cpu",))
    assert isinstance(claimed, claims.Claimed)
    assert claimed.task_version == newer
    later = school.hand_in("ben")
    attempt_endings.finish(store, claimed.attempt_id, claimed.lease_token, verdict_of(Verdict.ACCEPTED, 90))
    told = ines.get(tried).text
    assert f'A trial of version <span class="mono">{newer[:10]}</span>' in told
    assert f"#{attempt}<" in told
    assert re.search(r"40.*\+50", told, re.DOTALL)
    assert task_of(school).terms.version == "0" * 64

    ines.post(f"{tried}/apply")
    assert task_of(school).terms.version == newer
    waiting = claims.claim(store, "w1", ("cpu",))
    assert isinstance(waiting, claims.Claimed)
    assert (waiting.attempt_id, waiting.task_version) == (later, "0" * 64), "handed in for the other one"
    assert "There is no other version" in ines.get(page).text


def test_a_trial_that_comes_late_leaves_the_version_that_others_have_set(school: School) -> None:
    task, ines, store = task_of(school), school.client("ines"), school.store
    newer = task.terms.version
    courses.set_task(store, school.course, task.task, task.profile, courses.TaskTerms("Old", "0" * 64))
    school.judge("anna")
    place = at(school, f"settings/{school.task}/update")
    tried = ines.post(place, data={"version": newer, "how": "try"}).headers["location"]
    assert ines.post(place, data={"version": "1" * 64, "how": "now"}).headers["location"].endswith("/update")
    assert task_of(school).terms.version == "0" * 64, "it is not what was looked at"
    courses.set_task(store, school.course, task.task, task.profile, courses.TaskTerms("Other", "2" * 64))
    ines.post(f"{tried}/apply")
    assert task_of(school).terms.version == "2" * 64


def test_a_version_is_taken_over_at_once_and_learners_read_the_one_that_is_set(
    school: School, tmp_path: Path
) -> None:
    """The folder is edited while the service runs: pages and diffs speak of versions, not of folders."""
    tasks = tmp_path / "course" / "tasks"
    shutil.copytree(
        settings().tasks_dir / "ddp-toy", tasks / "ddp-toy", ignore=shutil.ignore_patterns("rejected")
    )
    shutil.copytree(settings().skeletons_dir / "ddp-toy", tmp_path / "course" / "skeletons" / "ddp-toy")
    page, shown = at(school, f"settings/{school.task}"), at(school, f"tasks/{school.task}")
    ines, anna = school.client("ines"), school.client("anna")
    with in_course(tasks):
        keep_version(school.store, school.files, load_task("ddp-toy"))
        statement = tasks / "ddp-toy" / "statement.md"
        statement.write_text(statement.read_text() + "\nBring a towel.\n")
        assert "Bring a towel" not in anna.get(shown).text
        told = ines.get(f"{page}/update").text
        assert "+Bring a towel." in told
        (newer,) = re.findall(r'name="version" value="(\w{64})"', told)
        ines.post(f"{page}/update", data={"version": newer, "how": "now"})
        assert "Bring a towel" in anna.get(shown).text
        shutil.rmtree(tasks)
        assert "Bring a towel" in anna.get(shown).text, "no folder is needed"
        assert anna.get(f"{shown}/skeleton").status_code == 200


def test_more_time_for_one_and_for_all(school: School) -> None:
    task = task_of(school)
    yesterday = datetime.now(UTC) - timedelta(days=1)
    courses.set_task(
        school.store,
        school.course,
        task.task,
        task.profile,
        courses.TaskTerms("Due", "0" * 64, due_at=yesterday),
    )
    ines, place = school.client("ines"), at(school, "extensions")

    def taken(login: str) -> bool:
        given = submissions.submit(school.store, school.people[login], school.task, script(f"# {login}\n"))
        return not isinstance(given, Refusal)

    later = (datetime.now(UTC) + timedelta(days=2)).strftime("%Y-%m-%dT%H:%M")
    form = {"task": str(school.task), "due_at": later, "reason": "ill"}
    ines.post(place, data={**form, "person": str(school.people["anna"])})
    assert (taken("anna"), taken("ben")) == (True, False)
    ines.post(place, data={**form, "person": ""})
    assert taken("ben")
    ines.post(f"{place}/retract", data={"task": str(school.task), "person": str(school.people["anna"])})
    assert not taken("anna")
    strange = {**form, "person": str(school.people["olga"])}
    assert ines.post(place, data=strange).status_code == 422
    assert ines.post(place, data={**form, "due_at": "", "person": ""}).status_code == 422


def test_a_closed_course_takes_nothing_and_opens_again(school: School) -> None:
    ines = school.client("ines")
    ines.post(at(school, "settings/door"), data={"closed": "yes", "confirmed": "yes"})
    assert isinstance(submissions.submit(school.store, school.people["anna"], school.task, script()), Refusal)
    assert "closed" in ines.get(at(school, "settings")).text
    ines.post(at(school, "settings/door"), data={"closed": ""})
    assert not isinstance(
        submissions.submit(school.store, school.people["anna"], school.task, script()), Refusal
    )


def test_what_was_done_is_told_by_name(school: School) -> None:
    school.client("ines").post(at(school, "settings/door"), data={"closed": "yes", "confirmed": "yes"})
    text = school.client("ines").get(at(school, "audit")).text
    assert re.search(r"<th scope=\"row\">closed</th><td>Ines", text)


def test_enrolments_do_not_hide_what_else_was_done(school: School) -> None:
    ines = school.client("ines")
    ines.post(at(school, "settings/door"), data={"closed": "yes", "confirmed": "yes"})
    text = ines.get(at(school, "audit")).text
    assert text.count('<th scope="row">enrolled') == 1
    assert "× 4" in text
    assert '<th scope="row">closed</th>' in text
    only = ines.get(at(school, "audit?kind=enrolled")).text
    assert only.count('<th scope="row">enrolled</th>') == 4
    assert '<th scope="row">closed</th>' not in only
    assert ines.get(at(school, "audit?kind=nonsense&before=x")).status_code == 200


def test_a_long_audit_has_pages(school: School) -> None:
    ines = school.client("ines")
    for number in range(101):
        course_life.set_words(school.store, school.course, f"Title {number}", None, actor_id=None)
    text = ines.get(at(school, "audit")).text
    (older,) = re.findall(r'rel="next" href="([^"]+)"', text)
    assert "Title 0" not in text
    assert "Title 0" in ines.get(html.unescape(older)).text


def test_a_course_gets_another_title_and_text(school: School) -> None:
    ines, anna = school.client("ines"), school.client("anna")
    words = {"title": "Autumn <school>", "about": "Bring a laptop."}
    assert ines.post(at(school, "words"), data=words).status_code == 303
    told = anna.get(f"/courses/{school.course}").text
    assert "Autumn &lt;school&gt;" in told
    assert "Bring a laptop." in told
    assert "Bring a laptop." in ines.get(at(school, "words")).text
    refused = ines.post(at(school, "words"), data={"title": " ", "about": "kept"})
    assert refused.status_code == 422
    assert "kept" in refused.text
    assert anna.post(at(school, "words"), data=words).status_code == 404


def test_the_queue_is_paused_with_a_reason_and_goes_on(school: School) -> None:
    waiting = school.hand_in("anna")
    ines = school.client("ines")
    ines.post("/queue/pause", data={"gate": "*", "reason": " "})
    ines.post("/queue/pause", data={"gate": "nonsense", "reason": "x"})
    assert not queue.queue_state(school.store).pauses
    ines.post("/queue/pause", data={"gate": "*", "reason": "Lunch <now>"})
    assert not isinstance(claims.claim(school.store, "w1", ("cpu",)), claims.Claimed)
    text = ines.get("/queue").text
    assert "Lunch &lt;now&gt;" in text
    assert "Nobody takes what needs cpu" in text
    waits = school.client("anna").get(f"/attempts/{waiting}").text
    assert "Number 1 in the queue." in waits
    assert "starts" not in waits.split('id="now-line"')[1].split("</p>")[0], "nobody knows when it goes on"
    assert "The queue is paused: Lunch &lt;now&gt;. Your place is kept." in waits
    ines.post("/queue/resume", data={"gate": "*"})
    ines.post("/queue/pause", data={"gate": "*", "reason": "Maintenance."})
    waits = school.client("anna").get(f"/attempts/{waiting}").text
    assert "The queue is paused: Maintenance. Your place is kept." in waits
    ines.post("/queue/resume", data={"gate": "*"})
    claimed = claims.claim(school.store, "w1", ("cpu",))
    assert isinstance(claimed, claims.Claimed)
    assert claimed.attempt_id == waiting


def test_whoever_waits_is_told_only_of_what_holds_them(school: School) -> None:
    waiting = school.hand_in("anna")
    anna = school.client("anna")
    queue.report_worker(school.store, "w2", ("gpu",), 1)
    assert "No worker is there just now." in anna.get(f"/attempts/{waiting}").text, (
        "that one takes nothing of hers"
    )
    queue.report_worker(school.store, "w1", ("cpu",), 1)
    queue.pause(school.store, "gpu", reason="It is mended.", actor_id=None)
    text = anna.get(f"/attempts/{waiting}").text
    assert "Number 1 in the queue, starts at once." in text
    assert "The queue is paused" not in text
    assert "No worker is there just now." not in text
    queue.pause(school.store, "cpu", reason="So is this.", actor_id=None)
    text = anna.get(f"/attempts/{waiting}").text
    assert "The queue is paused: So is this. Your place is kept." in text
    assert "It is mended." not in text


def test_the_queue_names_attempts_of_ones_own_courses_only(school: School) -> None:
    mine = school.hand_in("anna")
    claims.claim(school.store, "w1", ("cpu",))
    assert f'href="/attempts/{mine}"' in school.client("ines").get("/queue").text
    others = school.client("otto").get("/queue").text
    assert f'href="/attempts/{mine}"' not in others
    assert "anna" not in others


def test_what_workers_say_of_their_hosts_stands_beside_them(school: School) -> None:
    ines = school.client("ines")
    queue.report_worker(school.store, "older", ["cpu"], 1)
    assert "no leases" not in ines.get("/queue").text
    host = queue.WorkerHost(num_gpus=2, num_leases=1, num_waiting=3, num_containers=4)
    queue.report_worker(school.store, "host-1", ["cpu", "gpu2"], 2, host)
    told = ines.get("/queue").text
    for words in (
        "2 devices fit for use",
        "1 lease held",
        "3 requests for devices",
        "4 containers, warm and in use",
    ):
        assert words in told
    queue.report_worker(school.store, "host-1", ["cpu"], 2, queue.WorkerHost(num_gpus=0, num_leases=0))
    assert "no devices, no leases" in ines.get("/queue").text


def test_a_worker_is_drained(school: School) -> None:
    queue.report_worker(school.store, "host-1", ["cpu"], 2)
    school.client("ines").post("/queue/drain", data={"worker": "host-1"})
    assert queue.report_worker(school.store, "host-1", ["cpu"], 2), "it is told to end"
    assert "ends when what it judges is done" in school.client("ines").get("/queue").text


def test_administrators_make_accounts_and_close_them(school: School) -> None:
    ada = school.client("ada")
    made = ada.post("/admin/people", data={"login": "Nora", "name": "Nora N", "role": "instructor"})
    (secret,) = re.findall(r'<strong class="mono">([a-z0-9-]{14})</strong>', made.text)
    nora = people.check_password(school.store, "nora", secret)
    assert nora is not None
    assert nora.role is Role.INSTRUCTOR
    assert (
        ada.post("/admin/people", data={"login": "nora", "name": "N", "role": "learner"}).status_code == 422
    )
    ada.post(f"/admin/people/{nora.id}/door", data={"open": ""})
    assert people.check_password(school.store, "nora", secret) is None
    ada.post(f"/admin/people/{nora.id}/erase", data={"confirm": "nora"})
    assert people.account_by_login(school.store, "nora") is None


def test_administrators_do_not_lock_themselves_out(school: School) -> None:
    ada, me = school.client("ada"), school.people["ada"]
    ada.post(f"/admin/people/{me}/door", data={"open": ""})
    ada.post(f"/admin/people/{me}/role", data={"role": "learner"})
    ada.post(f"/admin/people/{me}/erase", data={"confirm": "ada"})
    found = people.check_password(school.store, "ada", PASSWORD)
    assert found is not None
    assert found.role is Role.ADMIN


def test_a_course_is_founded_from_its_file(school: School) -> None:
    ada = school.client("ada")
    form = {"file": "course.toml", "begins_at": "2026-03-01T08:00", "file_teacher": "otto"}
    made = ada.post("/admin/courses/from-file", data=form)
    assert made.status_code == 303, made.text
    course_id = int(made.headers["location"].split("/")[2])
    set_tasks = courses.tasks_of(school.store, course_id)
    assert set_tasks
    assert {one.terms.version for one in set_tasks} == {load_task(one.task).version for one in set_tasks}
    assert any(
        one.course_id == course_id for one in own_courses.courses_of(school.store, school.people["otto"])
    )
    # The name is taken now: said beside the field, nothing half made.
    assert ada.post("/admin/courses/from-file", data=form).status_code == 422
    assert ada.post("/admin/courses/from-file", data={"file": "../x.toml"}).status_code == 422


def test_an_empty_course_is_founded(school: School) -> None:
    ada = school.client("ada")
    made = ada.post("/admin/courses", data={"name": "autumn", "title": "Autumn", "teacher": "ines"})
    course_id = int(made.headers["location"].split("/")[2])
    assert school.client("ines").get(f"/courses/{course_id}/gradebook").status_code == 200
    for wrong in ({"name": "Not Good"}, {"title": ""}, {"teacher": "nobody"}, {"name": "autumn"}):
        answer = ada.post("/admin/courses", data={"name": "winter", "title": "W", "teacher": "", **wrong})
        assert answer.status_code == 422, wrong


def test_administrators_bring_courses_in_and_nobody_else(school: School, tmp_path: Path) -> None:
    left_out = shutil.ignore_patterns("rejected", "crashed", "deadlocked")
    shutil.copytree(settings().tasks_dir / "ddp-toy", tmp_path / "c" / "toy", ignore=left_out)
    shutil.copytree(settings().skeletons_dir / "ddp-toy", tmp_path / "c" / "toy" / "skeleton")
    (tmp_path / "c" / "course.toml").write_text(
        'name = "mine"\ntitle = "Mine"\nabout = "From elsewhere."\n[[tasks]]\ntask = "toy"\nweight = 100\n'
    )
    packed = Path(shutil.make_archive(str(tmp_path / "mine"), "zip", tmp_path / "c"))
    files = {"archive": ("mine.zip", packed.read_bytes())}
    form = {"address": "", "import_teacher": "otto"}
    assert school.client("ines").post("/admin/courses/import", data=form, files=files).status_code == 403
    ada = school.client("ada")
    made = ada.post("/admin/courses/import", data=form, files=files)
    assert made.status_code == 303, made.text
    settings_page = made.headers["location"]
    told = ada.get(settings_page).text
    assert "mine.zip, SHA-256" in told
    (task,) = courses.tasks_of(school.store, int(settings_page.split("/")[2]))
    assert school.client("otto").get(f"/courses/{task.course_id}/tasks/{task.id}").status_code == 200
    again = ada.post("/admin/courses/import", data=form, files=files, follow_redirects=True)
    assert "Brought to its newer state. as they were: toy." in again.text
    for wrong, why in (
        ({"address": f"file://{tmp_path}"}, "begins with https://"),
        ({"address": ""}, "one of the two"),
        ({"address": "https://127.0.0.1:1/none.git"}, "could not fetch"),
    ):
        answer = ada.post("/admin/courses/import", data=wrong)
        assert (answer.status_code, why in answer.text) == (422, True)
    broken = {"archive": ("mine.zip", packed.read_bytes()[:300])}
    assert "damaged" in ada.post("/admin/courses/import", data=form, files=broken).text
