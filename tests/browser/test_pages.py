"""Every page for learners in a real browser: phone and desk, light and dark, by keyboard, for screen readers."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from grader.catalog.tasks.task_folders import load_task
from grader.model.grade import Verdict
from grader.report.audience import Audience
from grader.report.html.attempt_page import to_html
from grader.report.json_report import to_json
from grader.store import events
from grader.store.attempts import attempt_endings
from grader.store.courses import courses
from grader.store.courses.courses import TaskTerms
from grader.store.grading import certificates, reviews
from grader.store.grading.grades import new_grade
from grader.store.people import invitations, people, tokens
from grader.store.queue import claims
from grader.store.tables.api_token import Scope
from tests.browser import page_checks
from tests.browser.conftest import SIZES, Windows
from tests.notebooks.notebook_files import notebook
from tests.promised import CHECKOUT
from tests.report import factory
from tests.store.campus import verdict_of
from tests.web.conftest import School, Served

pytestmark = pytest.mark.browser

LONG_NAME = "Anna-Katharina Wolkenstein-Trostburg " * 3
HOSTILE = '</title></style><script>document.title="owned"</script>\u202egnp\x1b[31m'


def show(school: School, login: str, name: str, task: int | None = None) -> int:
    attempt = getattr(factory, name)()
    grade = new_grade(attempt.grade, to_json(attempt.grade, audience=Audience.STAFF))
    report = to_html(attempt, factory.PAGES).encode()
    return school.judge(login, f"# {name}\n{factory.SOURCE}", grade, task=task, files={"report.html": report})


@pytest.fixture
def addresses(served: Served) -> dict[str, tuple[str | None, str]]:
    """Pages full and empty: what they are → (who looks, address)."""
    school, now = served.school, datetime.now(UTC)
    course = f"/courses/{school.course}"
    toy = load_task("ddp-toy")
    courses.set_task(
        school.store,
        school.course,
        "ddp-toy",
        "cpu",
        TaskTerms(toy.title, toy.version, due_at=now + timedelta(days=3), max_per_day=9, max_total=20),
    )
    show(school, "anna", "accepted")
    rejected = show(school, "anna", "rejected", school.tasks["ddp-fashion"])
    crashed = show(school, "anna", "crashed", school.tasks["ddp-fashion"])
    show(school, "ben", "deadlocked", school.tasks["ddp-fashion"])
    school.judge("anna", "# held", verdict_of(Verdict.HELD, 60.0), task=school.tasks["ddp-fashion"])
    ines = school.people["ines"]
    reviews.comment(school.store, rejected, f"Look here {HOSTILE}", author_id=ines, path="train.py", line=23)
    reviews.override(school.store, rejected, Verdict.ACCEPTED, 70, f"good {HOSTILE}", actor_id=ines)
    certified = certificates.issue(school.store, school.course, school.people["anna"])
    assert isinstance(certified, certificates.CertificateFacts)
    tokens.issue_token(
        school.store,
        school.people["anna"],
        HOSTILE,
        Scope.READ,
        lifetime_s=86400,
        actor_id=school.people["anna"],
    )
    running = school.hand_in("anna", f"# {HOSTILE}\n{factory.SOURCE}")
    lease = claims.claim(school.store, "w1", ("cpu",))
    assert isinstance(lease, claims.Claimed)
    said = "step 1 of many, " * 40 + HOSTILE
    events.add_live_events(
        school.store,
        running,
        lease.lease_token,
        [
            ("phase", {"phase": "run"}),
            ("epoch", {"epoch": 2, "of": 6, "loss": 0.51}),
            ("log", {"rank": 0, "stream": "stdout", "text": said}),
            ("log", {"rank": 1, "stream": "stderr", "text": said}),
        ],
    )
    waiting = school.hand_in("ben")
    people.add_person(school.store, "new", LONG_NAME, password="correct horse battery")
    school.people["new"] = people.account_by_login(school.store, "new").id  # type: ignore[union-attr]
    code = invitations.invite(school.store, school.course, actor_id=None)
    return {
        "sign-in": (None, "/sign-in"),
        "join": (None, "/join"),
        "join by code": (None, f"/join/{code}"),
        "join as oneself": ("new", f"/join/{code}"),
        "home, empty": ("new", "/"),
        "home": ("anna", "/"),
        "course": ("anna", course),
        "course after a deadlock": ("ben", course),
        "task": ("anna", f"{course}/tasks/{school.tasks['ddp-fashion']}"),
        "task, new": ("ben", f"{course}/tasks/{school.task}"),
        "waiting": ("ben", f"/attempts/{waiting}"),
        "running": ("anna", f"/attempts/{running}"),
        "report": ("anna", f"/attempts/{rejected}"),
        "report of a crash": ("anna", f"/attempts/{crashed}"),
        "account": ("anna", "/account"),
        "password": ("anna", "/password"),
        "certificate": (None, f"/certificates/{certified.public_id}"),
        "rule": (None, "/rules/DATA001"),
        "nothing": ("anna", "/nothing-here"),
    }


def opened(served: Served, windows: Windows, who: str | None, address: str, size: str, scheme: str) -> Any:
    window = windows(served.url, size, scheme)
    if who is not None:
        window.enter(served.school, who)
    window.page.goto(address, wait_until="domcontentloaded")
    window.page.evaluate("document.querySelectorAll('details').forEach(e => e.open = true)")
    return window


@pytest.mark.slow
@pytest.mark.parametrize(("size", "scheme"), [("phone", "dark"), ("desk", "light")])
def test_every_page_can_be_read_by_everybody(
    served: Served, windows: Windows, addresses: dict[str, tuple[str | None, str]], size: str, scheme: str
) -> None:
    wrong: dict[str, list[Any]] = {}
    for name, (who, address) in addresses.items():
        window = opened(served, windows, who, address, size, scheme)
        page = window.page
        contrast = page.evaluate(page_checks.CONTRAST)
        found = [
            *page.evaluate(page_checks.FAULTS),
            *page.evaluate(page_checks.UNREACHABLE),
            *contrast["poor"],
            *(said for said in window.trouble if "404" not in said),
        ]
        width = page.evaluate("document.documentElement.scrollWidth")
        if width > SIZES[size][0]:
            found.append(f"{width} px wide")
        if page.title() == "owned":
            found.append("a name acted")
        if contrast["seen"] < 5:
            found.append("nothing to read")
        if found:
            wrong[name] = found
        window.context.close()
    assert wrong == {}


def test_the_keyboard_reaches_everything_and_one_sees_where_one_is(
    served: Served, windows: Windows, addresses: dict[str, tuple[str | None, str]]
) -> None:
    for name in ("sign-in", "course", "task, new", "account"):
        who, address = addresses[name]
        page = opened(served, windows, who, address, "desk", "light").page
        wanted = page.evaluate(
            "[...document.querySelectorAll('a[href], button:not(:disabled), input:not([type=hidden]), select, textarea,"
            " summary')].filter(e => e.checkVisibility()).length"
        )
        if name == "sign-in":
            assert page.evaluate("document.activeElement.name") == "login", "it begins where one types first"
        # From the top, wherever a page has put the focus.
        page.evaluate(
            "document.body.tabIndex = -1; document.body.focus(); document.body.removeAttribute('tabindex')"
        )
        reached, faults = set(), []
        for number in range(wanted + 60):
            page.keyboard.press("Tab")
            focus = page.evaluate(page_checks.FOCUS)
            if focus["tag"] == "BODY":
                break
            if number == 0:
                assert focus["name"] == "Skip to the content"
                assert focus["width"] > 0
            page.evaluate("document.activeElement.dataset.reached = '1'")
            reached.add(number)
            if not focus["seen"]:
                faults.append(focus)
        left = page.evaluate(
            "[...document.querySelectorAll('a[href], button:not(:disabled), input:not([type=hidden]), select, textarea,"
            " summary')].filter(e => e.checkVisibility() && !e.dataset.reached).map(e => e.outerHTML.slice(0, 90))"
        )
        assert faults == [], name
        assert left == [], name


def test_a_script_is_handed_in_by_keyboard_alone(served: Served, windows: Windows) -> None:
    window = windows(served.url)
    window.enter(served.school, "ben")
    page = window.page
    page.goto(f"/courses/{served.school.course}/tasks/{served.school.task}")
    page.focus("#hand-in summary")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "text"
    page.keyboard.insert_text(factory.SOURCE)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/attempts/*")
    assert page.inner_text("h1") == "Your 1st attempt"


def test_dropping_a_file_shows_its_findings_and_anything_else_is_explained(
    served: Served, windows: Windows
) -> None:
    window = windows(served.url)
    window.enter(served.school, "ben")
    page = window.page
    page.goto(f"/courses/{served.school.course}/tasks/{served.school.tasks['ddp-fashion']}")
    drop = """([name, text]) => { const data = new DataTransfer(); data.items.add(new File([text], name));
      const drop = new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true});
      document.querySelector('.drop').dispatchEvent(drop); }"""
    page.evaluate(drop, ["train.py", factory.SOURCE])
    page.wait_for_selector("#found .card")
    assert page.get_attribute("#found", "aria-live") == "polite"
    page.evaluate(drop, [f"{HOSTILE}.ipynb", "{}"])
    page.wait_for_selector("#found .flash")
    assert "Rename it" in page.inner_text("#found")
    assert "owned" not in page.title()
    picture = {"output_type": "display_data", "data": {"image/png": "A" * (9 << 20)}, "metadata": {}}
    lab = notebook(f"%%writefile train.py\n{factory.SOURCE}", outputs=[picture]).decode()
    page.evaluate(drop, ["lab.ipynb", lab])
    page.wait_for_selector("#found .card >> text=cell 1, line")
    assert page.evaluate("document.querySelector('#files').files[0].size") < 1 << 20, "its pictures stay here"
    assert window.trouble == []


def test_on_a_phone_the_result_of_a_check_comes_into_view(served: Served, windows: Windows) -> None:
    window = windows(served.url, "phone")
    window.enter(served.school, "ben")
    page = window.page
    page.goto(f"/courses/{served.school.course}/tasks/{served.school.task}")
    page.set_input_files("#files", CHECKOUT / "skeletons" / "ddp-toy" / "train.py")
    page.wait_for_selector("#found:focus")
    assert "not found in the text" in page.inner_text("#found")
    assert 0 <= page.evaluate("document.getElementById('found').getBoundingClientRect().top") < 200
    page.click("text=Back to handing in")
    assert page.is_visible("main button:has-text('Hand in')")
    assert window.trouble == []


def test_what_is_too_large_stays_in_the_browser_with_all_that_was_typed(
    served: Served, windows: Windows
) -> None:
    window = windows(served.url)
    window.enter(served.school, "ben")
    page = window.page
    page.goto(f"/courses/{served.school.course}/tasks/{served.school.task}")
    page.click("text=Paste the script instead")
    page.fill("#text", "print('mine')")
    weights = {"name": "model.py", "mimeType": "text/x-python", "buffer": b"#" * (20 << 20)}
    page.set_input_files("#files", weights)
    page.wait_for_selector("#found .flash.tone-bad:has-text('model.py has 20 MiB; a script may have 1 MiB')")
    here = page.url
    page.click("main button:has-text('Hand in')")
    assert page.url == here
    assert page.input_value("#text") == "print('mine')"
    page.set_input_files("#files", [])
    page.wait_for_selector("#found :text('not found in the text')")
    page.click("main button:has-text('Hand in')")
    page.wait_for_url("**/attempts/*")


def test_the_live_page_follows_survives_a_reload_and_comes_back_after_an_outage(
    served: Served, windows: Windows
) -> None:
    school = served.school
    attempt = school.hand_in("anna")
    lease = claims.claim(school.store, "w1", ("cpu",))
    assert isinstance(lease, claims.Claimed)
    window = windows(served.url)
    window.enter(school, "anna")
    page = window.page
    page.goto(f"/attempts/{attempt}")

    def send_event(number: int) -> None:
        events.add_live_events(
            school.store,
            attempt,
            lease.lease_token,
            [
                ("phase", {"phase": "run"}),
                ("epoch", {"epoch": number, "of": 9, "loss": 1 / number}),
                ("log", {"rank": 1, "stream": "stdout", "text": f"line {number}\n"}),
            ],
        )

    send_event(1)
    page.wait_for_selector("[data-rank='1'] pre:has-text('line 1')")
    page.wait_for_selector("[data-step=run][aria-current=step]")
    page.reload()
    assert "line 1" in page.inner_text("[data-rank='1'] pre")
    window.context.set_offline(True)
    send_event(2)
    window.context.set_offline(False)
    send_event(3)
    page.wait_for_selector("[data-rank='1'] pre:has-text('line 3')")
    assert page.inner_text("[data-rank='1'] pre").split("\n")[:3] == ["line 1", "line 2", "line 3"]
    page.wait_for_function("document.getElementById('now-line').textContent.startsWith('Epoch 3 of 9')")
    # A tab that nobody looks at lets go of its connection, and misses nothing.
    hide = """hidden => { Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});
      document.dispatchEvent(new Event('visibilitychange')); }"""
    page.evaluate(hide, True)
    send_event(4)
    page.evaluate(hide, False)
    send_event(5)
    page.wait_for_selector("[data-rank='1'] pre:has-text('line 5')")
    printed = page.inner_text("[data-rank='1'] pre").split()
    assert printed == [word for number in range(1, 6) for word in ("line", str(number))]
    attempt_endings.finish(school.store, attempt, lease.lease_token, verdict_of())
    page.wait_for_selector("h1:has-text('Accepted')")


def test_a_run_that_says_nothing_is_told_to_be_silent(served: Served, windows: Windows) -> None:
    school = served.school
    attempt = school.hand_in("anna")
    lease = claims.claim(school.store, "w1", ("cpu",))
    assert isinstance(lease, claims.Claimed)

    def tell(kind: str, **data: Any) -> None:
        events.add_live_events(school.store, attempt, lease.lease_token, [(kind, data)])

    tell("phase", phase="run")
    window = windows(served.url)
    window.enter(school, "anna")
    page = window.page
    page.clock.install()
    page.goto(f"/attempts/{attempt}")
    page.wait_for_selector("[data-step=run][aria-current=step]")
    page.clock.run_for(7_000)
    page.wait_for_selector("#now-line:has-text('Nothing was heard of the ranks for 6 s.')")
    tell("epoch", epoch=1, of=9, loss=0.5)
    page.wait_for_selector("#now-line:has-text('Epoch 1 of 9')")
    page.clock.run_for(13_000)
    page.wait_for_selector(
        "#now-line:has-text('Epoch 1 of 9, loss 0.5. Nothing was heard of the ranks for 12 s.')"
    )
    assert window.trouble == []


def test_what_is_said_of_waiting_goes_when_the_run_is_taken(served: Served, windows: Windows) -> None:
    school = served.school
    attempt = school.hand_in("anna")
    window = windows(served.url)
    window.enter(school, "anna")
    page, free = window.page, "While it waits, cancelling costs no attempt."
    page.goto(f"/attempts/{attempt}")
    assert page.is_visible(f"text={free}")
    assert page.is_visible("text=No worker is there just now.")
    assert page.inner_text("#cancel") == "Cancel"
    lease = claims.claim(school.store, "w1", ("cpu",))
    assert isinstance(lease, claims.Claimed)
    page.wait_for_selector("[data-step=prepare][aria-current=step]")
    assert not page.is_visible(f"text={free}")
    assert not page.is_visible("text=No worker is there just now.")
    assert page.inner_text("#cancel") == "Cancel…", "it asks first from now on"
    page.reload()
    assert not page.is_visible(f"text={free}")
    attempt_endings.fail(school.store, attempt, lease.lease_token, "the machine failed", retry=True)
    page.wait_for_selector("[data-step=queue][aria-current=step]")
    assert page.is_visible(f"text={free}")
    assert page.inner_text("#cancel") == "Cancel"
    assert window.trouble == []


def test_who_wants_no_motion_gets_none(served: Served, windows: Windows) -> None:
    attempt = served.school.hand_in("anna")
    names = []
    for motion in ("no-preference", "reduce"):
        window = windows(served.url, reduced_motion=motion)
        window.enter(served.school, "anna")
        window.page.goto(f"/attempts/{attempt}", wait_until="domcontentloaded")
        names.append(
            window.page.evaluate(
                "getComputedStyle(document.querySelector('.steps .now .name'), '::before').animationName"
            )
        )
    assert names == ["beat", "none"]


def test_nothing_of_ours_needs_the_network_or_an_inline_script(served: Served, windows: Windows) -> None:
    window = windows(served.url)
    window.page.goto("/sign-in")
    policy = window.page.evaluate(
        "fetch('/sign-in').then(answer => answer.headers.get('content-security-policy'))"
    )
    assert "unsafe" not in policy
    # What slipped through would not run.
    window.page.evaluate(
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"document.title=1\">')"
    )
    window.page.wait_for_timeout(200)
    assert window.page.title() != "1"


@pytest.mark.parametrize("paper", ["A4", "Letter"])
def test_a_certificate_with_a_whole_course_fits_on_one_sheet(
    served: Served, windows: Windows, paper: str
) -> None:
    school = served.school
    for number in range(9):
        title = f"Task {number}: a title as long as titles of tasks usually are"
        made = courses.set_task(
            school.store, school.course, f"task-{number}", "cpu", TaskTerms(title, "0" * 64)
        )
        school.judge("anna", task=made)
    for made in school.tasks.values():
        school.judge("anna", task=made)
    issued = certificates.issue(school.store, school.course, school.people["anna"])
    assert isinstance(issued, certificates.CertificateFacts)
    window = windows(served.url)
    window.page.goto(f"/certificates/{issued.public_id}")
    assert window.page.locator(".tasks-done li").count() == 11
    sheets = re.findall(rb"/Type\s*/Page\b(?!s)", window.page.pdf(format=paper))
    assert len(sheets) == 1
