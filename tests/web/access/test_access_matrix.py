"""Whoever comes, by whatever route there is: they get in where its door says so, and learn nothing anywhere else.

Routes are read from the app itself, so that one added tomorrow is tried, too. What somebody may not see answers exactly
as what does not exist, and a request that was refused has changed nothing.
"""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from grader.catalog.tasks.task_folders import find_tasks
from grader.report.audience import Audience
from grader.report.html.attempt_page import plots_of, to_html
from grader.report.json_report import to_json
from grader.store.courses import enrolments
from grader.store.grading import certificates, regrades, reviews
from grader.store.grading.grades import new_grade
from grader.store.people import erasure, invitations, people
from grader.store.tables import Base
from grader.store.tables.api_token import Scope
from grader.store.tables.person import Role
from grader.web.security.access import AccessRule
from tests.promised import promises
from tests.report import factory
from tests.web.access_promises import OBJECTS, SHOWN, is_open, needed_scope, reads
from tests.web.conftest import School, make_school
from tests.web.grades import FOR_STAFF, graded
from tests.web.routes import Way, ways

ANNAS, BENS = "annas-own-words", "bens-own-words"
EVIDENCE = "evidence-of-the-run"
COURSE_TITLE = "Distributed training"
PEOPLE = ("anna", "ben", "olga", "otto", "ines", "ada", "robot", "tess", "otis", "mila", "fred", "gone")
MISSING = 987_654


@dataclass
class Campus:
    """The school with one of everything in it, and the values of all paths that lead to it."""

    school: School
    own: dict[str, Any]
    bens: dict[str, Any]
    absent: dict[str, Any]
    ways: list[Way]
    erased: Any


@pytest.fixture(scope="module")
def campus(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Campus]:
    folder = tmp_path_factory.mktemp("matrix")
    database = folder / "grader.db"
    database.write_bytes(empty_database.read_bytes())
    school = make_school(database, folder)
    left = {
        "report.html": f"<p>{ANNAS}".encode(),
        "report-staff.html": f"<p>{FOR_STAFF}".encode(),
        "grade-learner.json": b"{}",
        "grade.json": FOR_STAFF.encode(),
        "evidence.tar.gz": EVIDENCE.encode(),
    }
    for login, role, section in (
        ("anna", Role.LEARNER, "A"),
        ("ben", Role.LEARNER, "B"),
        ("tess", Role.ASSISTANT, "A"),
        ("otis", Role.OBSERVER, None),
        ("mila", Role.LEARNER, "A"),
        ("fred", Role.ASSISTANT, None),
    ):
        enrolments.leave(school.store, school.course, school.people.get(login, 0), actor_id=None)
        school.join(login, role, section=section)
    school.join("mila", Role.INSTRUCTOR, course=school.other_course)
    enrolments.leave(school.store, school.course, school.people["fred"], actor_id=None)
    school.join("gone", Role.INSTRUCTOR)
    account = people.account(school.store, school.people["gone"])
    erasure.erase(school.store, school.files, school.people["gone"], actor_id=None)
    attempt = school.judge("anna", f"# {ANNAS}\n", graded(name=ANNAS, message=ANNAS), files=left)
    bens = school.judge("ben", f"# {BENS}\n", graded(name=BENS, message=BENS), files=left)
    reviews.comment(school.store, attempt, f"{ANNAS} could be shorter", author_id=school.people["ines"])
    batch = regrades.queue_new_runs(school.store, [attempt], actor_id=school.people["ines"])
    code = invitations.invite(school.store, school.course, actor_id=None)
    assert isinstance(
        certificates.issue(school.store, school.course, school.people["anna"]), certificates.MissingTasks
    )
    own = {
        "course_id": school.course,
        "course_task_id": school.task,
        "attempt_id": attempt,
        "batch": batch,
        "person_id": school.people["anna"],
        "name": "evidence.tar.gz",
        "code": code,
    }
    of_ben = {
        "attempt_id": bens,
        "batch": regrades.queue_new_runs(school.store, [bens], actor_id=school.people["ines"]),
        "person_id": school.people["ben"],
    }
    absent = {**own, "course_id": MISSING, "course_task_id": MISSING, "attempt_id": MISSING, "batch": "none"}
    yield Campus(school, own, {**own, **of_ben}, absent, ways(school.app), account)
    school.store.close()


def test_every_route_says_whom_it_lets_in(campus: Campus) -> None:
    without = [way.path for way in campus.ways if way.access_rule is None]
    assert not without, f"routes without a door: {without}"
    assert len(campus.ways) > 30, "the walk has lost routes"


def test_only_these_are_open_to_everybody(campus: Campus) -> None:
    """A list on purpose: who opens a route to everybody says so here, too."""
    assert {way.path for way in campus.ways if way.access_rule is AccessRule.PUBLIC} <= {
        "/api",
        "/api/v1/mail/off/{token}",
        "/api/v1/openapi.json",
        "/api/v1/sign-in",
        "/api/v1/tokens",
        "/certificates/{code}",
        "/healthz",
        "/join",
        "/join/{code}",
        "/join/{code}/new",
        "/lti/continue",
        "/lti/continue/account",
        "/lti/continue/course",
        "/lti/deep-linking",
        "/lti/keys",
        "/lti/launch",
        "/lti/login",
        "/lti/register",
        "/mail/off/{token}",
        "/metrics",
        "/readyz",
        "/recover",
        "/rules/{code}",
        "/sign-in",
        "/sign-on/{provider_id}",
        "/sign-on/{provider_id}/callback",
        "/sign-on/{provider_id}/sign-out",
        "/static/{digest}/{name}",
    }


_TOLD = {
    "see tasks and statements": ["GET /courses/{course_id}/tasks/{course_task_id}"],
    "hand in": ["POST /api/v1/course-tasks/{course_task_id}/submissions"],
    "gradebook, attempts, checks, who is stuck": [
        f"GET /courses/{{course_id}}/{page}"
        for page in ("gradebook", "attempts", "checks", "stuck", "review")
    ],
    "a learner's page, their reports and scripts": [
        "GET /courses/{course_id}/people/{person_id}",
        "GET /attempts/{attempt_id}/review",
    ],
    "comment, answer, override, decide what is held or asked about": [
        f"POST /attempts/{{attempt_id}}/{verb}"
        for verb in (
            "comment",
            "comments/{comment_id}/reply",
            "override",
            "withdraw",
            "decide",
            "regrade-requests/{request_id}",
        )
    ],
    "read the library of comments": ["GET /courses/{course_id}/library"],
    "judge one attempt again, and apply that": [
        "POST /attempts/{attempt_id}/regrade",
        "POST /regrades/{batch}/apply",
    ],
    "judge many again": ["POST /courses/{course_id}/regrades"],
    "similarity, exports, certificates, audit": [
        f"GET /courses/{{course_id}}/{page}" for page in ("similarity", "exports", "certificates", "audit")
    ],
    "settings, dates, extensions": [
        "GET /courses/{course_id}/settings",
        "POST /courses/{course_id}/settings/{course_task_id}",
        "POST /courses/{course_id}/extensions",
    ],
    "people, passwords, invitations": [
        "POST /courses/{course_id}/people",
        "POST /courses/{course_id}/people/import/take-over",
        "GET /courses/{course_id}/people/one-time-passwords.csv",
        "POST /courses/{course_id}/people/{person_id}/role",
        "POST /courses/{course_id}/invitations",
    ],
    "pause the queue": ["POST /queue/pause"],
}
"""Routes that each line of the documentation's table is about."""


def test_the_docs_say_who_may_do_what(campus: Campus, repository: Path) -> None:
    """Held against the same promises that all routes are tried by."""
    text = (repository / "docs/instructors.md").read_text(encoding="utf-8")
    table = text.partition("| what | learner | observer | assistant | instructor |\n")[2].partition("\n\n")[0]
    told = {
        cells[0]: cells[1:] for line in table.splitlines()[1:] if (cells := line.strip("| ").split(" | "))
    }
    assert told.keys() == _TOLD.keys()
    ways_of = {f"{way.method} {way.path}": way for way in campus.ways}
    for what, routes in _TOLD.items():
        for route in routes:
            # Ben is no owner of what these routes are about.
            may = [is_open(ways_of[route], login) for login in ("ben", "otis", "tess", "ines")]
            assert told[what] == ["yes" if one else "no" for one in may], f"{what}: {route}"


def test_no_address_leads_to_two_routes(campus: Campus) -> None:
    shapes: dict[tuple[str, str], list[str]] = {}
    for way in campus.ways:
        shapes.setdefault((way.method, re.sub(r"{[^}]*}", "{}", way.path)), []).append(way.path)
    assert not {shape: paths for shape, paths in shapes.items() if len(paths) > 1}


@pytest.mark.parametrize("login", [None, *PEOPLE])
def test_nobody_gets_further_than_the_door(campus: Campus, login: str | None) -> None:
    school = campus.school
    before = _everything(school)
    browser = _browser(campus, login)
    if login == "gone":
        login = None
    nothing = _nothing(browser)
    for way in campus.ways:
        if way.access_rule is AccessRule.PUBLIC or is_open(way, login):
            continue
        answer = _ask(browser, way, campus.own)
        _assert_refused(answer, way, login)
        _assert_tells_nothing(answer, way, login)
        if way.access_rule in OBJECTS and login is not None and answer.status_code != 403:
            assert _shape(answer) == nothing[way.is_api], f"{login} sees that {way.path} exists"
    assert _everything(school) == before, "a refused request has changed something"


@pytest.mark.parametrize("login", ["anna", "ben", "ines", "ada", "robot", "tess", "otis", "mila"])
def test_whoever_may_read_does(campus: Campus, login: str) -> None:
    browser = campus.school.client(login)
    for way in campus.ways:
        known = set(way.parameters) <= {"course_id", "course_task_id", "attempt_id", "batch"} or (
            way.access_rule is AccessRule.COURSE_READER and way.parameters == ("course_id", "person_id")
        )
        if way.changes or way.access_rule is AccessRule.PUBLIC or not known or not is_open(way, login):
            continue
        answer = _ask(browser, way, campus.own)
        # 303: a page that leads on to another one of theirs.
        assert answer.status_code in (200, 303), (
            f"{login} {way.path}: {answer.status_code} {answer.text[:300]}"
        )
        assert "/sign-in" not in answer.headers.get("location", ""), way.path
        if not reads(login):
            for words in (FOR_STAFF, BENS if login == "anna" else ANNAS):
                assert words not in answer.text, f"{login} reads {words} at {way.path}"
        if login == "tess":
            assert BENS not in answer.text, f"tess reads of another section at {way.path}"
            assert re.search(r"\b[Bb]en\b", answer.text) is None, f"tess reads of ben at {way.path}"


def test_an_assistant_gets_no_further_than_the_section(campus: Campus) -> None:
    """What tess may do for anna she may not for ben, who is in another section; nor see that it is there."""
    before = _everything(campus.school)
    browser = campus.school.client("tess")
    nothing = _nothing(browser)
    tried = [way for way in campus.ways if way.access_rule in SHOWN and set(way.parameters) & set(_BENS)]
    for way in tried:
        answer = _ask(browser, way, campus.bens)
        assert _shape(answer) == nothing[way.is_api], f"tess sees that {way.method} {way.path} is there"
    assert len(tried) > 20
    assert _everything(campus.school) == before


@pytest.mark.parametrize("login", ["tess", "otis"])
def test_pages_offer_only_what_the_role_opens(campus: Campus, login: str) -> None:
    """From page to page, as a person walks: no link that leads nowhere, no form that would be refused."""
    browser = campus.school.client(login)
    doors = {(way.method, _pattern(way)): way for way in campus.ways}
    todo, seen = ["/"], set[str]()
    while todo:
        address = todo.pop()
        path = address.partition("?")[0].partition("#")[0]
        if path in seen or path.startswith(("/static/", "/sign-")) or "/files/" in path:
            continue
        seen.add(path)
        answer = browser.get(address)
        assert answer.status_code in (200, 303), f"{login} is led to {address}: {answer.status_code}"
        if "text/html" not in answer.headers.get("content-type", "") or path.endswith("/report"):
            continue
        todo += [html.unescape(one) for one in re.findall(r'href="(/[^"]*)"', answer.text)]
        for action in re.findall(r'<form method="post" action="([^"]+)"', answer.text):
            target = html.unescape(action).partition("?")[0]
            way = next(
                one for (method, shape), one in doors.items() if method == "POST" and shape.fullmatch(target)
            )
            assert is_open(way, login), f"{login} is offered {target} at {path}"
    assert len(seen) > 20, seen


def test_nobody_keeps_what_a_role_gave(school: School) -> None:
    """An assistant who is made an observer, or leaves, or whose learner changes sections, is refused at once."""
    enrolments.leave(school.store, school.course, school.people["anna"], actor_id=None)
    school.join("anna", section="A")
    school.join("tess", Role.ASSISTANT, section="A")
    attempt = school.judge("anna", None, graded())
    tess, token = school.client("tess"), school.program(school.token("tess"))
    page, verdict = f"/attempts/{attempt}/review", {"verdict": "accepted", "points": "1", "reason": "right"}
    assert tess.post(f"/attempts/{attempt}/override", data=verdict).status_code == 303
    assert token.get(f"/api/v1/attempts/{attempt}").json()["login"] == "anna"

    school.join("tess", Role.OBSERVER)
    assert tess.get(page).status_code == 200
    assert tess.post(f"/attempts/{attempt}/override", data=verdict).status_code == 404
    assert token.post(f"/api/v1/attempts/{attempt}/regrade").status_code == 404

    enrolments.leave(school.store, school.course, school.people["anna"], actor_id=None)
    school.join("anna", section="B")
    assert tess.get(page).status_code == 404
    assert token.get(f"/api/v1/attempts/{attempt}").status_code == 404
    assert token.get(f"/api/v1/courses/{school.course}/attempts").json() == []

    enrolments.leave(school.store, school.course, school.people["tess"], actor_id=None)
    assert tess.get(f"/courses/{school.course}").status_code == 404
    assert token.get(f"/api/v1/courses/{school.course}/gradebook").status_code == 404


def test_an_assistant_never_decides_about_themselves(school: School) -> None:
    """What somebody handed in as a learner, or tries out as an assistant, is for others to weigh."""
    attempt = school.judge("ben", None, graded())
    school.join("ben", Role.ASSISTANT)
    ben = school.client("ben")
    assert ben.get(f"/attempts/{attempt}").status_code == 200
    for path in ("override", "comment", "decide", "regrade"):
        assert ben.post(f"/attempts/{attempt}/{path}").status_code == 404, path
    assert f"/attempts/{attempt}/override" not in ben.get(f"/attempts/{attempt}").text


@pytest.mark.parametrize("scope", list(Scope))
@pytest.mark.parametrize("login", ["anna", "otto", "ines", "ada", "tess", "otis", "mila", "fred"])
def test_a_token_opens_no_more_than_its_owner_and_its_scope(campus: Campus, login: str, scope: Scope) -> None:
    school = campus.school
    program = school.program(school.token(login, scope))
    before = _everything(school, but=("api_tokens",))
    for way in campus.ways:
        if not way.is_api or way.access_rule is AccessRule.PUBLIC:
            continue
        far_enough = scope.includes(needed_scope(way))
        if way.access_rule is AccessRule.WORKER and far_enough:
            # Let in; there is neither a body nor a lease that could do anything.
            answer = _ask(program, way, campus.own)
            assert answer.status_code in (200, 422), f"{way.method} {way.path}: {answer.text}"
            _assert_tells_nothing(answer, way, None)
            continue
        if is_open(way, login) and far_enough:
            if not way.changes:
                answer = _ask(program, way, campus.own)
                assert answer.status_code == 200, f"{login} {way.path}: {answer.text}"
            continue
        answer = _ask(program, way, campus.own)
        assert answer.status_code in (403, 404), (
            f"{login} {scope} {way.method} {way.path}: {answer.status_code}"
        )
        assert set(answer.json()) == {"error"}
        _assert_tells_nothing(answer, way, login)
    assert _everything(school, but=("api_tokens",)) == before


def test_a_token_is_nobody_on_pages(campus: Campus) -> None:
    program = campus.school.program(campus.school.token("ada", Scope.MANAGE))
    for way in campus.ways:
        if not way.is_api and way.access_rule is not AccessRule.PUBLIC:
            answer = _ask(program, way, campus.own)
            _assert_refused(answer, way, None)


@pytest.mark.parametrize("login", ["anna", "ada"])
def test_what_tasks_keep_back_is_served_by_no_route(campus: Campus, login: str, repository: Path) -> None:
    """References, scorers and hidden data: neither by a route's own path nor by names that climb out of a folder."""
    school = campus.school
    shown = "".join(
        path.read_text(encoding="utf-8")
        for path in [*repository.glob("skeletons/*/*.py"), *repository.glob("tasks/*/statement.md")]
    )
    kept_back = set()
    kept = [path.read_text(encoding="utf-8") for path in repository.glob("tasks/*/evaluate.py")]
    for task in find_tasks():
        kept += [file.text for one in promises(task).values() for file in one.submission.files]
    for text in kept:
        own = {line.strip() for line in text.splitlines()} - set(shown.splitlines())
        kept_back |= {line for line in sorted(own, key=len)[-3:] if line not in shown}
    assert kept_back
    browser = school.client(login)
    climbing = [
        "evaluate.py",
        "..%2Fevaluate.py",
        "..%2F..%2Ftasks%2Fddp-toy%2Fevaluate.py",
        "%2e%2e/evaluate.py",
        "submissions",
        "secret_key",
        "grader.db",
        "..%2F..%2Fgrader.db",
        "%2Fetc%2Fpasswd",
    ]
    for way in campus.ways:
        if way.method != "GET":
            continue
        free = [name for name in way.parameters if name not in campus.absent or name in ("name", "code")]
        addresses = [way.address(campus.own)]
        addresses += [way.address({**campus.own, name: bad}) for name in free for bad in climbing]
        for address in addresses:
            answer = browser.get(address)
            text = html.unescape(answer.text)
            assert answer.status_code < 500, f"{address}: {text[:300]}"
            for line in kept_back:
                assert line not in text, f"{address} serves {line!r}"
            assert school.service.secret not in text
            assert "root:x:0" not in text


def test_no_route_tells_a_learner_a_hidden_score_to_the_digit(school: School) -> None:
    """Otherwise many submissions that differ in little would spell out hidden labels."""
    attempt = factory.near_miss()
    document, plots = to_json(attempt.grade, Audience.STAFF), plots_of(attempt)
    left = {
        "report.html": to_html(attempt, {}, plots=plots).encode(),
        "report-staff.html": to_html(attempt, {}, Audience.STAFF, plots).encode(),
        "grade-learner.json": to_json(attempt.grade).encode(),
        "grade.json": document.encode(),
    }
    own: dict[str, Any] = {"course_id": school.course, "course_task_id": school.task, "code": "none"}
    own["person_id"] = school.people["anna"]
    for number in range(2):
        text = f"print({number})\n"
        own["attempt_id"] = school.judge("anna", text, new_grade(attempt.grade, document), files=left)
    exact, told = ("0.898", "0.314"), {"anna": 0, "ines": 0}
    for login in told:
        browser = school.client(login)
        for way in ways(school.app):
            names = left if "name" in way.parameters else ("",)
            for name in names if way.method == "GET" else ():
                text = browser.get(way.address({**own, "name": name})).text
                told[login] += any(one in text for one in exact)
                assert login != "anna" or not any(one in text for one in exact), way.path
    assert "0.895" in school.client("anna").get(f"/attempts/{own['attempt_id']}").text
    assert told["ines"] >= 5, "the page, both reports, both grades"


@pytest.mark.parametrize("login", ["ines", "otto"])
def test_instructors_reach_nobody_of_another_course(campus: Campus, login: str) -> None:
    """A course's own door lets its instructor in; people in the path are still held against the course."""
    school = campus.school
    stranger, course = ("olga", school.course) if login == "ines" else ("anna", school.other_course)
    browser = school.client(login)
    values = {**campus.own, "course_id": course, "person_id": school.people[stranger]}
    before = _everything(school)
    for way in campus.ways:
        if way.access_rule is AccessRule.COURSE_STAFF and "person_id" in way.parameters:
            answer = _ask(browser, way, values)
            assert answer.status_code in (303, 400, 404, 422), f"{way.path}: {answer.status_code}"
            assert stranger not in answer.text.casefold(), way.path
    assert _everything(school) == before


_BENS = ("attempt_id", "batch", "person_id")


def _browser(campus: Campus, login: str | None) -> Any:
    """Whoever it is; an erased account comes with the cookie that it had."""
    if login != "gone":
        return campus.school.client(login)
    browser = campus.school.client()
    browser.sign_in_as(campus.school.service, campus.erased)
    return browser


def _nothing(browser: Any) -> dict[bool, tuple[int, str]]:
    """How this browser is told that there is nothing: by a page, and (True) by the API."""
    roots = {False: "", True: "/api/v1"}
    return {api: _shape(browser.get(f"{root}/courses/{MISSING}/gradebook")) for api, root in roots.items()}


def _pattern(way: Way) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\{\w+(?::\w+)?\\}", "[^/]+", re.escape(way.path)))


def _ask(client: Any, way: Way, values: dict[str, Any]) -> httpx.Response:
    more: dict[str, Any] = {}
    if way.path.endswith("/submissions"):
        more["json"] = {"files": [{"path": "train.py", "text": "print(1)\n"}]}
    answer: httpx.Response = client.request(way.method, way.address(values), **more)
    return answer


def _assert_refused(answer: httpx.Response, way: Way, login: str | None) -> None:
    told = f"{login} {way.method} {way.path}: {answer.status_code}"
    if login is None and way.method == "GET" and not way.is_api:
        assert answer.status_code == 303, told
        assert answer.headers["location"].startswith("/sign-in"), told
    elif login is None:
        assert answer.status_code in (401, 403), told
    elif way.access_rule in (AccessRule.STAFF, AccessRule.ADMIN, AccessRule.WORKER):
        assert answer.status_code == 403, told
    else:
        assert answer.status_code == 404, told


def _assert_tells_nothing(answer: httpx.Response, way: Way, login: str | None) -> None:
    own = {one: [COURSE_TITLE] for one in ("robot", "tess", "otis", "mila")}
    own |= {"anna": [ANNAS, COURSE_TITLE], "ben": [BENS, COURSE_TITLE]}
    for words in {ANNAS, BENS, FOR_STAFF, EVIDENCE, COURSE_TITLE} - set(own.get(login or "", ())):
        assert words not in answer.text, f"{login} reads {words} at {way.path}"


def _shape(answer: httpx.Response) -> tuple[int, str]:
    """An answer without what differs for every request: its own address and forgery token."""
    text = re.sub(r"[0-9a-f]{64}", "", answer.text)
    return answer.status_code, re.sub(r"\d+", "0", text)


def _everything(school: School, but: tuple[str, ...] = ()) -> str:
    """A digest of the whole database."""
    sha = hashlib.sha256()
    with school.store.read() as connection:
        for table in Base.metadata.sorted_tables:
            if table.name not in but:
                for row in connection.execute(table.select().order_by(*table.primary_key.columns)):
                    sha.update(repr(tuple(row)).encode())
    return sha.hexdigest()
