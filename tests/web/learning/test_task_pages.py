"""A task's page: what it says, what may be handed in, and that nothing of an upload acts on it."""

from __future__ import annotations

import io
import re
import zipfile
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from grader.catalog.tasks.task_folders import load_task
from grader.model.grade import Verdict
from grader.store.attempts.attempts import AttemptFilter, attempts
from grader.store.attempts.submissions import source_of
from grader.store.courses import course_life, courses
from grader.store.courses.courses import TaskTerms
from grader.store.courses.extensions import Extension, extend
from tests.notebooks.notebook_files import notebook
from tests.promised import CHECKOUT
from tests.report.factory import SOURCE
from tests.store.campus import verdict_of
from tests.web.conftest import School

TASKS = sorted(path.parent.name for path in (CHECKOUT / "tasks").glob("*/task.toml"))
HOSTILE = (
    'X = "</code></pre><script>alert(1)</script>"  # \x1b[31m \u202egnp.exe {{ 7*7 }}\n'
    '"""</textarea><img src=x onerror=alert(2)>"""\n'
)


SOURCE_CELL = "# grader: train.py\nimport torch.distributed as dist\n\ndist.init_process_group('gloo')"


def terms(school: School, name: str = "ddp-toy", **more: Any) -> str:
    """Set a task on these terms; returns its page's address."""
    task = load_task(name)
    made = courses.set_task(
        school.store, school.course, name, "cpu", TaskTerms(task.title, task.version, **more)
    )
    return f"/courses/{school.course}/tasks/{made}"


def handed_in(school: School, login: str = "anna") -> int:
    return len(attempts(school.store, AttemptFilter(person_id=school.people[login])))


def script(text: str, name: str = "train.py") -> dict[str, Any]:
    return {"files": (name, text.encode(), "text/x-python")}


def test_the_page_says_what_to_do_and_what_holds(school: School) -> None:
    due = datetime(2031, 5, 1, 18, 0, tzinfo=UTC)
    page = terms(school, "ddp-fashion", due_at=due, late_policy="reduced", late_loss=0.1, max_total=5)
    extend(
        school.store,
        school.tasks["ddp-fashion"],
        Extension(due + timedelta(days=7)),
        person_ids=[school.people["anna"]],
        actor_id=None,
    )
    text = school.client("anna").get(page).text
    for said in (
        "8 May 2031",
        "moved for you",
        "10 % of the points",
        "5 of 5 left",
        "torchrun --nproc_per_node=2",
    ):
        assert said in text
    assert "1 May 2031" in school.client("ben").get(page).text


def test_the_skeleton_can_be_had_and_nothing_beside_it(school: School) -> None:
    page, browser = terms(school), school.client("anna")
    skeleton = browser.get(f"{page}/skeleton")
    assert skeleton.content == (load_task("ddp-toy").skeleton / "train.py").read_bytes()
    assert "attachment" in skeleton.headers["content-disposition"]
    for name in ("evaluate.py", "task.toml", "..%2Fevaluate.py", "statement.md", "a.svg"):
        assert browser.get(f"{page}/figures/{name}").status_code == 404


@pytest.mark.parametrize("how", ["file", "pasted", "zip"])
def test_handing_in_leads_to_the_attempt(school: School, how: str) -> None:
    browser, page = school.client("anna"), terms(school, "ddp-fashion")
    if how == "zip":
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("mine/train.py", SOURCE)
            archive.writestr("mine/helper.py", "x = 1\n")
        done = browser.post(
            f"{page}/submit", files={"files": ("mine.zip", packed.getvalue(), "application/zip")}
        )
    elif how == "file":
        done = browser.post(f"{page}/submit", files=script(SOURCE, "my attempt.py"))
    else:
        done = browser.post(f"{page}/submit", data={"text": SOURCE})
    assert done.status_code == 303
    number = int(done.headers["location"].removeprefix("/attempts/"))
    source = source_of(school.store, number)
    assert source is not None
    assert source.text("train.py") == SOURCE
    live = browser.get(f"/attempts/{number}").text
    assert "Every rank trains on the whole data set" in live, (
        "what the text gives away is said before anything runs"
    )
    assert "in the queue" in live.lower()


@pytest.mark.parametrize(
    ("policy", "cost"), [("accepted", "it costs no points"), ("reduced", "−20 %"), ("closed", None)]
)
def test_what_lateness_costs_is_told_before_it_is_paid(school: School, policy: str, cost: str | None) -> None:
    due = datetime.now(UTC) - timedelta(hours=30)
    page = terms(school, due_at=due, late_policy=policy, late_loss=0.1)
    told = re.findall(r"Handing in now counts as (.*?)</p>", school.client("anna").get(page).text)
    assert told == ([] if cost is None else [f"2 days late: {cost}."])


def test_a_look_costs_nothing_and_keeps_nothing(school: School) -> None:
    browser, page = school.client("anna"), terms(school, "ddp-fashion")
    whole = browser.post(f"{page}/submit", data={"text": SOURCE, "action": "check"})
    piece = browser.post(f"{page}/check", files=script(SOURCE))
    for answer in (whole, piece):
        assert answer.status_code == 200
        assert "DATA001" in answer.text
        assert "#finding-1" in answer.text
        assert "−20 of 20 points for" in answer.text, "as a grade of this task says"
    assert "<html" in whole.text
    assert "<html" not in piece.text
    assert "What to do" in whole.text
    assert handed_in(school) == 0


def test_the_statement_is_told_in_the_language_that_is_chosen_or_else_the_browsers(school: School) -> None:
    browser, page = school.client("anna"), terms(school)

    def told(languages: str, chosen: str = "") -> str:
        browser.cookies.delete("language")
        return browser.get(page + chosen, headers={"Accept-Language": languages}).text

    for languages, chosen in (("de-AT,de;q=0.9,en;q=0.5", ""), ("fr, de;q=0.3", ""), ("en", "?language=de")):
        text = told(languages, chosen)
        assert "Du bekommst ein Skript" in text
        assert 'aria-label="Was zu tun ist" lang="de"' in text
        assert f'href="{page}?language=en#statement"' in text
    for languages, chosen in (
        ("en-GB,de;q=0.9", ""),
        ("fr", ""),
        ("de;q=2,;;q=,*", ""),
        ("de", "?language=en"),
    ):
        text = told(languages, chosen)
        assert "You get a script" in text
        assert f'href="{page}?language=de#statement"' in text
    assert "Told in" not in browser.get(terms(school, "ddp-fashion")).text, "there is one language alone"


def test_the_task_is_a_notebook_too(school: School) -> None:
    browser, page = school.client("anna"), terms(school)
    assert f'href="{page}/notebook?language=en"' in browser.get(page).text
    lab = browser.get(f"{page}/notebook?language=de")
    assert 'filename="ddp-toy.ipynb"' in lab.headers["content-disposition"]
    first, *_, last = lab.json()["cells"]
    assert "Du bekommst ein Skript" in "".join(first["source"])
    assert last["source"] == ["!grader submit ddp-toy train.py --wait"]
    # Who has it from here may have a client alone, which knows no task.
    commands = ["".join(cell["source"]) for cell in lab.json()["cells"] if cell["cell_type"] == "code"]
    assert commands[1:3] == ["!grader lint train.py", "!grader submit ddp-toy train.py --check"]
    assert "`grader login http" in lab.text
    browser.cookies.delete("language")
    taken = browser.post(
        f"{page}/submit", files={"files": ("ddp-toy.ipynb", lab.content)}, data={"action": "check"}
    )
    assert "not found in the text" in taken.text
    found = browser.post(f"{page}/check", files={"files": ("a.ipynb", notebook("x = 1", SOURCE_CELL))}).text
    assert "cell 2, line 4" in found


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"files": ("lab.ipynb", b"{}", "text/plain")}, "Hand in the file that Jupyter saves"),
        ({"files": ("weights.pt", b"\x00", "text/plain")}, "does not end in .py"),
        ({"files": ("train.py", b"\xff\xfe", "text/plain")}, "UTF-8"),
        ({"files": ("train.py", b"", "text/plain")}, "empty"),
        ({"files": ("train.py", b"x" * (2 << 20), "text/plain")}, "larger than a script"),
        ({}, "Nothing was uploaded"),
    ],
    ids=["notebook", "weights", "binary", "empty", "large", "nothing"],
)
def test_what_is_no_script_is_explained(school: School, files: dict[str, Any], said: str) -> None:
    browser, page = school.client("anna"), terms(school)
    whole = browser.post(f"{page}/submit", files=files or None, data={"action": "submit"})
    assert whole.status_code == 422
    assert said in whole.text
    assert "Hand in" in whole.text, "the form is there again"
    assert said in browser.post(f"{page}/check", files=files or None, data={"action": "submit"}).text
    assert handed_in(school) == 0


@pytest.mark.parametrize("name", TASKS)
def test_an_untouched_skeleton_is_told_what_is_missing_and_gets_no_tick(school: School, name: str) -> None:
    browser, page = school.client("anna"), terms(school, name)
    skeleton = browser.get(f"{page}/skeleton").text
    whole = browser.post(f"{page}/submit", data={"text": skeleton, "action": "check"}).text
    piece = browser.post(f"{page}/check", files=script(skeleton)).text
    for text in (whole.split('id="found"')[1], piece):
        assert "not found in the text" in text
        assert re.search(r"that must be right (is|are) not (in the text yet|right in the text)", text)
        assert "no findings" not in text
    assert handed_in(school) == 0


def test_where_the_tasks_folder_is_missing_a_skeleton_gets_no_praise_either(school: School) -> None:
    browser = school.client("anna")
    skeleton = browser.get(f"{terms(school)}/skeleton").text
    gone = courses.set_task(school.store, school.course, "gone", "cpu", TaskTerms("Gone", "0" * 64))
    text = browser.post(f"/courses/{school.course}/tasks/{gone}/check", files=script(skeleton)).text
    assert "What the task asks for cannot be read just now" in text
    assert "no findings" not in text


def test_what_is_missing_stands_in_the_order_in_which_to_write_it(school: School) -> None:
    browser, page = school.client("anna"), terms(school, "ddp-fashion")
    text = browser.post(f"{page}/check", files=script(browser.get(f"{page}/skeleton").text)).text
    order = [
        "init_process_group",
        "DistributedDataParallel",
        "DistributedSampler",
        "set_epoch",
        "get_rank() == 0",
    ]
    assert sorted(order, key=text.index) == order
    assert "The trained network classifies images" in text
    assert "only a run can tell" in text


def test_a_script_that_cannot_run_costs_no_attempt_and_is_still_in_the_form(school: School) -> None:
    browser, page = school.client("anna"), terms(school, max_total=2)
    refused = browser.post(f"{page}/submit", data={"text": "import torch\ndef main(:\n    pass\n"})
    assert refused.status_code == 422
    assert "not valid Python" in refused.text
    assert "no attempt is spent" in refused.text
    assert "def main(:" in refused.text.split("<textarea")[1].split("</textarea>")[0]
    assert "Python cannot read the script" in refused.text, "the finding has a title"
    assert "2 of 2 left" in refused.text
    assert handed_in(school) == 0


def test_the_address_of_a_refused_form_leads_back_to_the_task(school: School) -> None:
    browser, page = school.client("anna"), terms(school)
    again = browser.get(f"{page}/submit")
    assert again.status_code == 303
    assert again.headers["location"] == page


def test_what_is_far_too_large_leads_back_to_the_form(school: School) -> None:
    browser, page = school.client("anna"), terms(school)
    huge = {"files": ("train.py", b"#" * (school.service.max_upload_bytes + 1), "text/plain")}
    refused = browser.post(f"{page}/submit", files=huge)
    assert refused.status_code == 303
    assert refused.headers["location"] == page
    told = browser.get(page).text
    assert "Hand in train.py and the modules it imports" in told
    assert "no attempt is spent" in told
    assert 'action="' + page + '/submit"' in told
    assert handed_in(school) == 0


def test_a_limit_is_explained_with_its_end_and_the_script_is_not_lost(school: School) -> None:
    browser, page = school.client("anna"), terms(school, max_per_day=1)
    school.judge("anna")
    assert "0 of 1 left within 24 hours" in browser.get(page).text
    refused = browser.post(f"{page}/submit", data={"text": SOURCE})
    assert refused.status_code == 409
    # Once, and as a moment that the browser shows in its own zone.
    assert refused.text.count("The next one is free on <time datetime=") == 1
    assert "def main():" in refused.text.split("<textarea")[1].split("</textarea>")[0]
    assert handed_in(school) == 1


def test_the_course_that_is_closed_takes_nothing(school: School) -> None:
    browser, page = school.client("anna"), terms(school)
    course_life.set_closed(school.store, school.course, True, actor_id=None)
    assert browser.post(f"{page}/submit", data={"text": SOURCE}).status_code == 403
    assert "closed" in browser.get(f"/courses/{school.course}").text


def test_no_upload_acts_on_a_page(school: School) -> None:
    browser, page = school.client("anna"), terms(school)
    name = "\u202e<script>alert(3)</script>"
    answers = [
        browser.post(f"{page}/submit", data={"text": HOSTILE + SOURCE, "action": "check"}),
        browser.post(f"{page}/check", files=script(HOSTILE + SOURCE, f"{name}.py")),
    ]
    attempt = school.hand_in("anna", HOSTILE)
    answers.append(browser.get(f"/attempts/{attempt}"))
    for answer in answers:
        text = answer.text
        assert answer.status_code in (200, 422)
        assert "<script>alert" not in text
        assert "<img src=x" not in text
        assert "\x1b" not in text
        assert "\u202e" not in text.split("<textarea")[0]
        assert "49" not in text.split("gnp.exe")[-1][:20]


def test_history_shows_each_attempt_and_a_curve_and_what_counts(school: School) -> None:
    page, browser = terms(school), school.client("anna")
    first = school.judge("anna", grade=verdict_of(Verdict.REJECTED, 20))
    assert "polyline" not in browser.get(page).text
    best = school.judge("anna", grade=verdict_of(Verdict.REJECTED, 60))
    last = school.judge("anna", grade=verdict_of(Verdict.CRASHED, 0))
    text = browser.get(page).text
    for number in (first, best, last):
        assert f'href="/attempts/{number}"' in text
    assert "3 judged attempts, from 20 to 0 points" in text
    assert re.findall(r"<text [^>]*>(.*?)</text>", text) == ["100", "0"], "the axis says what its ends are"
    assert f'<a href="/attempts/{best}">2nd</a> <span class="kind">counts' in text
    assert "<title>3rd attempt: The script crashed" in text
    assert "/attempts/" not in school.client("ben").get(page).text


def test_verdicts_that_wait_for_the_due_date_are_told_nowhere(school: School) -> None:
    due = datetime.now(UTC) + timedelta(days=1)
    page = terms(school, due_at=due, hidden_until_due=True)
    report = b'<style>p{}</style><div class="page">the secret report</body>'
    number = school.judge(
        "anna", grade=verdict_of(Verdict.REJECTED, 37.5, ("DATA001",)), files={"report.html": report}
    )
    browser = school.client("anna")
    addresses = ["/", f"/courses/{school.course}", page, f"/attempts/{number}"]
    for address in addresses:
        text = browser.get(address).text
        for secret in ("37.5", "tone-bad", "secret report"):
            assert secret not in text, address
    for address in ("report", "files/report.html", "files/grade-learner.json"):
        assert browser.get(f"/attempts/{number}/{address}").status_code == 404
    assert "37.5" not in browser.get(f"/attempts/{number}/live").text
    assert "the secret report" in school.client("ines").get(f"/attempts/{number}").text
    terms(school, due_at=datetime.now(UTC) - timedelta(minutes=1), hidden_until_due=True)
    assert "the secret report" in browser.get(f"/attempts/{number}").text


def test_rule_pages_are_open_and_those_for_staff_are_not(school: School) -> None:
    assert "Every rank trains on the whole data set" in school.client().get("/rules/data001").text
    assert school.client().get("/rules/NOPE999").status_code == 404
    assert school.client("anna").get("/rules/TRUST002").status_code == 404
    assert school.client("ines").get("/rules/TRUST002").status_code == 200


@pytest.mark.parametrize(
    ("came_from", "back"),
    [
        ("http://testserver/courses/1/tasks/2", '<a href="/courses/1/tasks/2">Back to the task</a>'),
        ("http://testserver/courses/1/tasks/2/submit", '<a href="/courses/1/tasks/2">Back to the task</a>'),
        ("http://testserver/attempts/7", '<a href="/attempts/7">Back to the attempt</a>'),
        ("http://elsewhere.example/courses/1/tasks/2", ""),
        ("http://testserver/sign-out", ""),
        ("", ""),
    ],
)
def test_rule_page_leads_back_to_where_one_came_from(school: School, came_from: str, back: str) -> None:
    browser = school.client("anna")
    origin = str(browser.base_url).rstrip("/")
    text = browser.get(
        "/rules/DATA001", headers={"referer": came_from.replace("http://testserver", origin)}
    ).text
    assert back in text
    assert ("Back to the" in text) is bool(back)


def test_what_a_task_asks_is_told_when_it_opens(school: School) -> None:
    page = terms(school, opens_at=datetime.now(UTC) + timedelta(hours=1))
    told, asked = "ToyModel", "torchrun --nproc_per_node"
    anna = school.client("anna")
    text = anna.get(page).text
    assert "Not open yet" in text
    assert asked not in text
    assert "/submit" not in text, "nothing is handed in yet"
    assert "upload.js" not in text
    assert "skeleton" not in text
    assert anna.get(f"{page}/skeleton").status_code == 404
    assert anna.post(f"{page}/submit", data={"text": SOURCE}).status_code == 409
    assert "join one process group" not in anna.post(f"{page}/check", data={"text": SOURCE}).text
    assert "join one process group" in school.client("ines").post(f"{page}/check", data={"text": SOURCE}).text
    assert asked in school.client("ines").get(page).text
    assert told in school.client("ines").get(f"{page}/skeleton").text


def test_looking_is_for_people_and_not_for_floods(school: School) -> None:
    page, anna = terms(school), school.client("anna")
    answers = [anna.post(f"{page}/check", data={"text": "x = 1\n"}).status_code for _ in range(120)]
    assert answers[0] == 200
    assert answers[-1] == 429
    assert school.client("ben").post(f"{page}/check", data={"text": "x = 1\n"}).status_code == 200
    assert anna.post(f"{page}/submit", data={"text": "x = 1\n"}).status_code == 303, (
        "handing in is still possible"
    )


def test_what_is_asked_is_told_in_the_readers_language(school: School) -> None:
    page, german = f"/courses/{school.course}/tasks/{school.tasks['ddp-fashion']}", {"Accept-Language": "de"}
    english, told = school.client("anna").get(page).text, school.client("anna").get(page, headers=german).text
    assert "<dt>Time</dt><dd>at most 1.35 times the slowest accepted solution’s</dd>" in english
    assert "at least 0.973 on digits" in english
    assert "<dt>Zeit</dt><dd>höchstens das 1,35-Fache der langsamsten angenommenen Lösung</dd>" in told
    assert "mindestens 0,973 auf digits" in told
    only = "Den Aufgabentext gibt es nur auf Englisch."
    assert only in told
    other = school.client("anna").get(f"/courses/{school.course}/tasks/{school.task}", headers=german).text
    assert only not in other, "this one is told in German, too"
