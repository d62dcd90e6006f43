"""An instructor's way through a course, in a real browser, and every staff page as everybody can read it."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from grader.model.grade import Verdict
from grader.store.courses import courses
from grader.store.courses.courses import TaskTerms
from grader.store.courses.grading_rules import GradingRules, set_grading_rules
from grader.store.grading import certificates, regrades, reviews
from grader.store.grading.gradebook import gradebook
from grader.store.people import invitations, people
from grader.store.queue import queue
from grader.store.tables.person import Role
from tests.browser import page_checks
from tests.browser.conftest import SIZES, School, Served, Windows
from tests.store.campus import verdict_of
from tests.web.conftest import PASSWORD
from tests.web.grades import graded
from tests.worker.rig import Rig, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.slow]

HOSTILE = "<script>document.title='owned'</script> \u202e=1+1 " + "very" * 20


@pytest.fixture
def addresses(school: School) -> dict[str, tuple[str, str]]:
    """Every staff page with something in it, and the emptiest of each kind."""
    for login in ("anna", "ben"):
        for points in (10.0, 20.0, 30.0):
            school.judge(login, grade=verdict_of(Verdict.REJECTED, points, ("DATA001", "GRAD001")))
    held = school.judge(
        "anna", f"# {HOSTILE}\nimport torch\n", graded(name=HOSTILE), files={"report.html": b"x"}
    )
    reviews.comment(school.store, held, HOSTILE, author_id=school.people["ines"], path="train.py", line=2)
    reviews.override(school.store, held, Verdict.ACCEPTED, 90.0, HOSTILE, actor_id=school.people["ines"])
    queue.report_worker(school.store, "a-worker-with-a-rather-long-name.example", ["cpu", "gpu1"], 2)
    queue.pause(school.store, "gpu1", reason=HOSTILE, actor_id=None)
    waiting = school.judge("ben", f"# {HOSTILE}\n", graded(Verdict.HELD, name=HOSTILE))
    reviews.ask(school.store, waiting, HOSTILE, author_id=school.people["ines"])
    courses.set_task(
        school.store, school.course, "ddp-draft", "cpu", TaskTerms(HOSTILE, "a" * 64), draft=True
    )
    anna, ines = school.people["anna"], school.people["ines"]
    for login in ("anna", "ben"):
        accepted = [school.judge(login, task=task) for task in school.tasks.values()]
        certificates.issue(school.store, school.course, school.people[login])
        # What was issued stays; they are stuck again.
        reviews.override(school.store, accepted[0], Verdict.REJECTED, 0.0, "not theirs", actor_id=ines)
    certificates.revoke_certificate(school.store, school.course, anna, HOSTILE, actor_id=ines)
    code = invitations.invite(school.store, school.course, lifetime_s=3600, actor_id=None)
    batch = regrades.queue_new_runs(school.store, [held], actor_id=school.people["ines"])
    course, other = f"/courses/{school.course}", f"/courses/{school.other_course}"
    found = {
        place: ("ines", f"{course}/{place}")
        for place in (
            *("gradebook", "attempts", "checks", "checks?projector=1", "stuck", "people", "people/import"),
            *("review", "words", "audit?kind=everything"),
            *(
                "invitations",
                f"invitations/{code}",
                "settings",
                f"settings/{school.task}",
                "extensions",
                "audit",
            ),
            *("exports", "exports/certificates", "similarity", "regrades", f"people/{anna}"),
            *("certificates", f"certificates/{anna}", f"certificates/{school.people['ben']}"),
        )
    }
    empty = {
        f"empty {place}": ("otto", f"{other}/{place}")
        for place in (
            "gradebook",
            "attempts",
            "review",
            "checks",
            "stuck",
            "people",
            "invitations",
            "regrades",
            "extensions",
            "certificates",
        )
    }
    return {
        **found,
        **empty,
        "course": ("ines", course),
        "decision": ("ines", f"/attempts/{waiting}/review"),
        "review of an attempt": ("ines", f"/attempts/{held}/review"),
        "attempt": ("ines", f"/attempts/{held}"),
        "regrade": ("ines", f"/regrades/{batch}?all=1"),
        "queue": ("ines", "/queue"),
        "accounts": ("ada", "/admin/people"),
        "account": ("ada", f"/admin/people/{school.people['anna']}"),
        "courses": ("ada", "/admin/courses"),
    }


@pytest.mark.parametrize(("size", "scheme"), [("phone", "dark"), ("desk", "light")])
def test_every_staff_page_can_be_read_by_everybody(
    served: Served, windows: Windows, addresses: dict[str, tuple[str, str]], size: str, scheme: str
) -> None:
    wrong: dict[str, list[Any]] = {}
    opened = {login: windows(served.url, size, scheme) for login in ("ines", "otto", "ada")}
    for login, window in opened.items():
        window.enter(served.school, login)
    for name, (login, address) in addresses.items():
        window = opened[login]
        page = window.page
        answer = page.goto(address, wait_until="domcontentloaded")
        page.evaluate("document.querySelectorAll('details').forEach(e => e.open = true)")
        found = [
            *page.evaluate(page_checks.FAULTS),
            *page.evaluate(page_checks.UNREACHABLE),
            *page.evaluate(page_checks.CONTRAST)["poor"],
            *window.trouble,
        ]
        window.trouble.clear()
        width = page.evaluate("document.documentElement.scrollWidth")
        if width > SIZES[size][0]:
            found.append(f"{width} px wide")
        if answer.status != 200:
            found.append(f"answered {answer.status}")
        if page.title() == "owned":
            found.append("a name acted")
        if found:
            wrong[name] = found
    assert not wrong, "\n".join(f"{name}: {found}" for name, found in wrong.items())


def test_an_instructor_overrides_regrades_and_exports(
    campus: tuple[Rig, str], windows: Windows, tmp_path: Path
) -> None:
    rig, url = campus
    ines = rig.person("ines", Role.INSTRUCTOR)
    people.set_password(rig.store, ines, PASSWORD, must_change=False, actor_id=None)
    attempt = rig.hand_in(rig.toy("rejected/bypasses_wrapper"))
    rig.wait(attempt)

    def counted() -> Any:
        return gradebook(rig.store, rig.course).rows[0].cells[rig.course_task]

    window = windows(url)
    page = window.page
    window.sign_in("ines")
    page.goto(f"/courses/{rig.course}/gradebook")
    page.click(f"a[href='/attempts/{attempt}']")
    page.click("text=Review beside the source")
    assert "GRAD002" in page.inner_text(".margin-source")

    # An override, by keyboard.
    page.select_option("#verdict", "accepted")
    page.fill("#override-points", "80")
    page.fill("#reason", "Explained it to me in person.")
    page.press("#reason", "Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector(".flash")
    assert "set by hand" in page.inner_text("main")
    assert (counted().verdict, counted().points) == (Verdict.ACCEPTED, 80.0)
    page.click("text=Withdraw the override")
    page.wait_for_selector(".flash")
    assert counted().verdict is Verdict.REJECTED

    # Judged again by the real worker, looked at, applied.
    page.click("text=Judge it again")
    page.wait_for_url("**/regrades/*")
    batch = page.url.rpartition("/")[2]
    wait_until(lambda: not regrades.batch_facts(rig.store, batch).num_open, "judged again")  # type: ignore[union-attr]
    page.goto(f"/regrades/{batch}?all=1")
    assert f"#{attempt}" in page.inner_text("table")
    page.click("text=Apply")
    page.wait_for_selector(".flash")
    assert "applied" in page.inner_text("main")

    page.goto(f"/courses/{rig.course}/exports")
    with page.expect_download() as download:
        page.click("text=Gradebook, CSV")
    with Path(download.value.path()).open(encoding="utf-8-sig", newline="") as file:
        anna = next(row for row in csv.DictReader(file) if row["login"] == "anna")
    assert anna["ddp-toy verdict"] == "rejected"
    with page.expect_download() as download:
        page.click("text=results.json per learner, zip")
    assert download.value.suggested_filename == "ddp-ddp-toy-cpu-gradescope.zip"
    assert window.trouble == []


def test_nothing_is_cut_off_where_a_word_is_long_or_a_page_narrow(served: Served, windows: Windows) -> None:
    school = served.school
    rules = GradingRules(forum_url="https://talk.example")
    set_grading_rules(school.store, school.course, rules, actor_id=school.people["ines"])
    school.judge("anna", grade=verdict_of(Verdict.REJECTED, 40.0, ("DATA001", "GRAD001")))
    school.hand_in("ben")
    cut = """selector => [...document.querySelectorAll(selector)].map(e => e.scrollWidth - e.clientWidth)"""
    for size in ("desk", "phone"):
        window = windows(served.url, size, locale="de-DE")
        window.enter(school, "ines")
        page = window.page
        for place in (
            f"courses/{school.course}/tasks/{school.task}",
            f"courses/{school.course}/checks",
            "queue",
        ):
            page.goto(f"/{place}")
            page.evaluate("document.querySelectorAll('details').forEach(e => e.open = true)")
            found = page.evaluate(cut, ".scroll:has(.tight), nav.tabs")
            assert found, (size, place)
            assert max(found) <= 1, (size, place, found)
            below = page.eval_on_selector_all(".under", "all => all.map(e => getComputedStyle(e).display)")
            assert set(below) <= {"block"}, "it does not run into the words that it stands below"
