"""A workshop from start to end as an institution holds it, on real parts: from sign-on to the archive."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from grader.model.grade import Verdict
from grader.store.attempts import attempt_endings
from grader.store.grading.grades import NewGrade
from grader.store.queue import claims
from tests import promised
from tests.browser.conftest import Window, Windows
from tests.browser.workshop import (
    ADMIN,
    ASSISTANT,
    LEARNERS,
    TEACHER,
    Workshop,
    open_workshop,
    roster,
    section_of,
)
from tests.sign_on.conftest import node_modules
from tests.store.campus import verdict_of
from tests.web.grades import graded
from tests.web.learning_platform import CLIENT_ID, DEPLOYMENT
from tests.worker.rig import wait_until

__all__ = ["node_modules"]
pytestmark = [pytest.mark.browser, pytest.mark.slow]

LONG_MS = 180_000
BY_BROWSER = LEARNERS[:3]
HELD = LEARNERS[-1]
COMMENT = "The idea is right: wrap the model, then train through the wrapper."
ANSWER = "Now I see it, thank you."


@pytest.fixture(scope="module")
def workshop(
    tmp_path_factory: pytest.TempPathFactory,
    data: Path,
    node_modules: Path,
) -> Iterator[Workshop]:
    with open_workshop(tmp_path_factory.mktemp("workshop") / "site", data, node_modules) as made:
        yield made


@dataclass
class Play:
    """The workshop while it goes on.

    Attributes:
        attempts: the attempt of each learner; programs: those of them that talk to the programming interface.
    """

    there: Workshop
    teacher: Window
    course: str
    task: str
    attempts: dict[str, int]
    programs: dict[str, httpx.Client]

    @property
    def task_page(self) -> str:
        return f"{self.course}/tasks/{self.task}"

    def teaches(self, place: str, *clicks: str) -> Any:
        """The teacher's page of the course at that place, after clicks that each lead to another one."""
        page = self.teacher.page
        page.goto(f"{self.course}/{place}")
        for one in clicks:
            send(page, one)
        return page


def test_a_workshop_from_sign_on_to_the_archive(workshop: Workshop, windows: Windows, tmp_path: Path) -> None:
    play = founded(workshop, windows)
    with_a_roster(play, tmp_path)
    on_the_learning_platform(play)
    learners = {login: windows(workshop.url) for login in BY_BROWSER}
    unseen_until_it_is_published(play, learners)
    handed_in(play, learners)
    assistant = windows(workshop.url)
    seen_by_the_assistant_of_a_section(play, assistant)
    decided(play)
    commented(play, learners[BY_BROWSER[0]])
    extended(play, learners[BY_BROWSER[1]])
    one_number_everywhere(play, learners[BY_BROWSER[0]])
    taken_away(play)
    archived(play, learners[BY_BROWSER[0]])
    for window in (play.teacher, assistant, *learners.values()):
        assert workshop.trouble(window) == []


def founded(there: Workshop, windows: Windows) -> Play:
    """The teacher signs on; an administrator makes the course for her and adds the platform; she sets the task."""
    teacher, admin = windows(there.url), windows(there.url)
    there.sign_on(teacher, TEACHER)
    admin.sign_in(ADMIN)
    page = admin.page
    page.goto("/admin/courses")
    page.fill("#title", "Workshop on DDP")
    page.fill("#name", "workshop")
    page.fill("#teacher", TEACHER)
    page.click("section[aria-labelledby=new-title] button")
    page.wait_for_url("**/courses/*/settings")
    course = page.url.removeprefix(there.url).removesuffix("/settings")
    page.goto("/admin/platforms")
    for name, text in there.platform.terms(name="Moodle").items():
        page.fill(f"#{name}", DEPLOYMENT if name == "deployments" else str(text))
    page.check("#link_by_address")
    page.click("section[aria-labelledby=add-title] button")
    page.wait_for_url("**/admin/platforms/*")
    assert CLIENT_ID in page.input_value("#client_id")
    assert there.trouble(admin) == []

    page = teacher.page
    page.goto(f"{course}/settings")
    assert "This course is a draft" in page.inner_text("main")
    page.select_option("#task", "ddp-toy/cpu")
    send(page, "button:has-text('Add as a draft')")
    due = datetime.now() + timedelta(days=7)  # noqa: DTZ005 - typed as clocks of any zone show it
    page.fill("#due_at", due.strftime("%Y-%m-%dT12:00"))
    page.fill("#max_total", "1")
    send(page, "button:has-text('Save')")
    return Play(there, teacher, course, page.url.rpartition("/")[2], {}, {})


def with_a_roster(play: Play, tmp_path: Path) -> None:
    """Everybody comes by a file, to sign on through the institution."""
    chosen = tmp_path / "people.csv"
    chosen.write_text(roster())
    page = play.teaches("people/import")
    page.set_input_files("#file", chosen)
    send(page, "button:has-text('Look at it')")
    page.check("input[value=sign_on]")
    send(page, "button:has-text('Take over 21 people')")
    page.wait_for_selector("#renewed .chip:has-text('done')")
    assert "left out" not in page.inner_text("main")


def on_the_learning_platform(play: Play) -> None:
    """The teacher opens a link of hers there, and connects the course; its list knows whom the roster brought."""
    page = play.teacher.page
    play.there.launch(play.teacher, TEACHER, "Instructor")
    page.click("text=Join it to my account")
    page.click("text=Connect it")
    page.wait_for_url(f"**{play.course}")
    known = f"{len(LEARNERS) + 1} people are known by it"
    wait_until(lambda: known in play.teaches("platform").inner_text("main"), "the platform's list is read")
    text = play.teaches("people").inner_text("main")
    assert len(re.findall(r"learner\d\d\b", text)) >= len(LEARNERS)
    assert "learner012" not in text, "nobody came a second time"


def unseen_until_it_is_published(play: Play, learners: dict[str, Window]) -> None:
    """Nobody sees a draft, of a course or of a task."""
    for login, window in learners.items():
        play.there.sign_on(window, login)
        window.page.goto("/")
        assert "Workshop" not in window.page.inner_text("main")
        assert status(window, play.course) == 404
    play.teaches("settings", "button:has-text('Publish the course')")
    window = next(iter(learners.values()))
    window.page.goto("/")
    window.page.click("text=Workshop on DDP")
    assert "toy" not in window.page.inner_text("main").casefold()
    assert status(window, play.task_page) == 404
    play.teaches("settings", ".row-actions button:has-text('Publish')")
    for window in learners.values():
        assert status(window, play.task_page) == 200


def handed_in(play: Play, learners: dict[str, Window]) -> None:
    """One attempt of a real worker; all others wait for it to be over, and get grades that stand ready."""
    first = BY_BROWSER[0]
    for login, window in learners.items():
        name = "rejected/bypasses_wrapper" if login == first else "accepted/flat_script"
        page = window.page
        page.click("text=Paste the script instead")
        page.fill("#text", script(login, name))
        page.click("main button:has-text('Hand in')")
        page.wait_for_url("**/attempts/*")
        play.attempts[login] = int(page.url.rpartition("/")[2])
        if login == first:
            page.wait_for_selector(".hero h1", timeout=LONG_MS)
            assert page.inner_text(".hero h1").startswith("Not accepted yet: ")
            play.there.rig.end("w1")
    for login in LEARNERS[len(learners) :]:
        play.programs[login] = play.there.program(login)
        answer = submit(play, login)
        assert answer.status_code == 202, answer.text
        play.attempts[login] = int(answer.json()["attempt_id"])
    for login, attempt_id in play.attempts.items():
        if login != first:
            judge(play, attempt_id, graded(Verdict.HELD) if login == HELD else accepted(login))


def seen_by_the_assistant_of_a_section(play: Play, window: Window) -> None:
    """Her own section, and nothing of the other one."""
    play.there.sign_on(window, ASSISTANT)
    for place in ("gradebook", "attempts", "people"):
        window.page.goto(f"{play.course}/{place}")
        text = window.page.inner_text("main")
        assert {one for one in LEARNERS if one.title() in text} == {
            one for one in LEARNERS if section_of(one) == "Monday"
        }, place
    # Who is held is in the other section.
    assert "Review (" not in window.page.inner_text("main")
    found = {login: status(window, f"/attempts/{attempt}") for login, attempt in play.attempts.items()}
    assert found == {login: 200 if section_of(login) == "Monday" else 404 for login in LEARNERS}
    assert status(window, f"{play.course}/settings") in (403, 404)


def decided(play: Play) -> None:
    """The count leads to what is held; it counts once somebody decides."""
    page = play.teaches("gradebook", "text=Review (1)")
    assert HELD.title() in page.inner_text("main")
    send(page, "a:has-text('Decide')")
    page.fill("#remark", "Explained in person.")
    send(page, "button:has-text('Accept with 40')")
    assert "Review (" not in play.teaches("gradebook").inner_text("main")
    play.there.mailed(HELD, "40 of 100")


def commented(play: Play, learner: Window) -> None:
    """A comment that changes points; its learner is mailed, answers, and the teacher finds the answer."""
    attempt = f"/attempts/{play.attempts[BY_BROWSER[0]]}"
    page = play.teacher.page
    page.goto(f"{attempt}/review")
    page.fill("#text", COMMENT)
    page.fill("#comment_points", "5")
    send(page, "#comment button")
    assert "changes points by +5." in page.inner_text(".flash")
    text = play.there.mailed(BY_BROWSER[0], COMMENT)
    link = re.search(rf"{re.escape(play.there.url)}{attempt}[\w#-]*", text)
    assert link is not None, text
    page = learner.page
    page.goto(link[0])
    assert COMMENT in page.inner_text("#comments")
    page.click("#comments summary")
    page.fill("#comments textarea", ANSWER)
    send(page, "#comments button")
    assert ANSWER in page.inner_text("#comments")
    page = play.teaches("gradebook", "text=Review (1)")
    assert ANSWER in page.inner_text("#replies")
    send(page, "button:has-text('No answer needed')")


def extended(play: Play, learner: Window) -> None:
    """One attempt is all that there is; whoever gets more has more."""
    page = learner.page
    page.goto(play.task_page)
    assert page.is_disabled("main button:has-text('Hand in')")
    staff = play.teaches("extensions")
    staff.select_option("#person", label=BY_BROWSER[1].title())
    staff.fill("#extra_total", "1")
    staff.fill("#due_at", "2090-01-01T12:00")
    staff.fill("#reason", "ill")
    send(staff, "button:has-text('Extend it')")
    page.reload()
    assert "moved for you" in page.inner_text("main")
    assert "1 of 2 left" in page.inner_text("main")
    assert page.is_enabled("main button:has-text('Hand in')")
    play.there.mailed(BY_BROWSER[1], "2090")


def one_number_everywhere(play: Play, learner: Window) -> None:
    """Gradebook, report and platform say the same of everybody."""
    page = play.teaches("exports")
    with page.expect_download() as download:
        page.click("text=Gradebook, CSV")
    with Path(download.value.path()).open(encoding="utf-8-sig", newline="") as file:
        points = {row["login"]: round(float(row["ddp-toy points"]), 2) for row in csv.DictReader(file)}
    assert set(points) == set(LEARNERS)
    assert points[HELD] == 40.0

    def told() -> dict[str, float]:
        said = {login: play.there.platform.told(login)[-1] for login in LEARNERS}
        return {login: round(one["scoreGiven"], 2) for login, one in said.items() if "scoreGiven" in one}

    wait_until(lambda: told() == points, f"the platform is told {points}")
    first = BY_BROWSER[0]
    number = f"{points[first]:g} of 100"
    for window, place in (
        (learner, f"/attempts/{play.attempts[first]}"),
        (learner, f"/attempts/{play.attempts[first]}/report"),
        (play.teacher, f"/attempts/{play.attempts[first]}"),
    ):
        window.page.goto(place)
        assert number in window.page.inner_text(".hero"), place
    row = play.teaches("gradebook").inner_text(f"tr:has-text('{first}')")
    assert f"{points[first]:g}" in row
    assert "None of this state" in play.teaches("platform?state=given_up").inner_text("main")


def taken_away(play: Play) -> None:
    """Everything that was handed in, in one file that can be read."""
    page = play.teaches("exports")
    with page.expect_download() as download:
        page.click("section[aria-labelledby=submissions-title] button")
    with zipfile.ZipFile(download.value.path()) as found:
        assert found.testzip() is None
        rows = list(csv.DictReader(io.StringIO(found.read("manifest.csv").decode("utf-8-sig"))))
        assert {row["login"] for row in rows} == set(LEARNERS)
        for row in rows:
            text = found.read(f"{row['folder']}/train.py").decode()
            assert f"# by {row['login']}" in text


def archived(play: Play, learner: Window) -> None:
    """Nothing more is handed in, and everything can be read."""
    play.teaches("settings", "button:has-text('Archive it')", "main button.danger")
    refused = submit(play, LEARNERS[3], "once more")
    assert refused.status_code == 403, refused.text
    assert "archive" in refused.text
    page = learner.page
    page.goto("/")
    page.click("text=1 archived course")
    page.click("text=Workshop on DDP")
    for place in (play.course, play.task_page, f"/attempts/{play.attempts[BY_BROWSER[0]]}"):
        assert status(learner, place) == 200, place
    assert COMMENT in page.inner_text("#comments")
    for place in ("gradebook", "attempts", "review", "people", "audit", "exports", "settings"):
        assert status(play.teacher, f"{play.course}/{place}") == 200, place
    assert status(play.teacher, f"/attempts/{play.attempts[HELD]}") == 200


def send(page: Any, what: str) -> None:
    """Click it, and wait for the page that comes next."""
    with page.expect_navigation():
        page.click(what)


def status(window: Window, place: str) -> int:
    """How a page is answered."""
    return int(window.page.goto(place).status)


def script(login: str, name: str = "accepted/flat_script") -> str:
    return f"{promised.text('ddp-toy', name)}\n# by {login}\n"


def submit(play: Play, login: str, remark: str = "") -> httpx.Response:
    body = {"name": "train", "files": [{"path": "train.py", "text": f"{script(login)}# {remark}\n"}]}
    return play.programs[login].post(f"/api/v1/course-tasks/{play.task}/submissions", json=body)


def accepted(login: str) -> NewGrade:
    """Of everybody another one."""
    return verdict_of(Verdict.ACCEPTED, 80.0 + LEARNERS.index(login) / 2)


def judge(play: Play, attempt_id: int, grade: NewGrade) -> None:
    """As a worker does it that has run the attempt, the oldest first."""
    claimed = claims.claim(play.there.rig.store, "w2", ("cpu",))
    assert isinstance(claimed, claims.Claimed)
    assert claimed.attempt_id == attempt_id
    attempt_endings.finish(play.there.rig.store, attempt_id, claimed.lease_token, grade)
