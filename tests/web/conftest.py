"""What the web's tests share: a campus with people of each role, the real app over it, and a real server for browsers.

Everybody's password is the same, so that tests can sign in as whoever they need; the tasks are the repository's own.
"""

from __future__ import annotations

import copy
import re
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import httpx
import pytest
import uvicorn
from argon2 import PasswordHasher
from fastapi import FastAPI
from starlette.testclient import TestClient

from grader.catalog.tasks.task_folders import load_task
from grader.model.submission import SourceFile, Submission
from grader.model.task import Task
from grader.settings.schema import Settings
from grader.store.attempts import attempt_endings, submissions
from grader.store.attempts.attempt_endings import StoredFile
from grader.store.attempts.submissions import Receipt
from grader.store.courses import courses, enrolments
from grader.store.courses.courses import TaskTerms
from grader.store.courses.enrolment_details import EnrolmentDetails
from grader.store.database import Store
from grader.store.files import FileStore
from grader.store.grading.grades import NewGrade
from grader.store.people import people, tokens
from grader.store.queue import claims
from grader.store.tables.api_token import Scope
from grader.store.tables.person import Role
from grader.web.app import create_app
from grader.web.security import csrf
from grader.web.security.connections import TimedConnection
from grader.web.service import WebService, open_service
from tests.store.campus import verdict_of

PASSWORD = "correct horse battery"
TASKS = ("ddp-toy", "ddp-fashion")
SCRIPT = "import torch\n\nprint(torch.__version__)\n"


@pytest.fixture(scope="session", autouse=True)
def _quick_passwords() -> Iterator[None]:
    """Argon2 with little memory: it is asked for hundreds of times here, and is slow on purpose."""
    with pytest.MonkeyPatch.context() as patch:
        quick = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
        people._decoy.cache_clear()
        patch.setattr(people, "_hasher", lambda: quick)
        yield
    people._decoy.cache_clear()


@dataclass
class School:
    """Two courses over one site.

    `anna` and `ben` learn in `course`, `ines` teaches it; `otto` teaches `other_course`, where `olga` learns; `ada` is
    admin, `robot` is a program that takes part in `course`.
    """

    service: WebService
    app: FastAPI
    course: int
    other_course: int
    tasks: dict[str, int]
    other_task: int
    people: dict[str, int]
    numbers: Iterator[int] = field(default_factory=lambda: iter(range(1_000_000)))

    @property
    def store(self) -> Store:
        return self.service.store

    @property
    def files(self) -> FileStore:
        return self.service.files

    @property
    def task(self) -> int:
        """The course's first task."""
        return self.tasks[TASKS[0]]

    def hand_in(self, login: str = "anna", text: str | None = None, *, task: int | None = None) -> int:
        """Put something into the queue, and return the attempt."""
        unique = f"print({next(self.numbers)})\n" if text is None else text
        submission = Submission("train", (SourceFile("train.py", unique),))
        answer = submissions.submit(self.store, self.people[login], task or self.task, submission)
        assert isinstance(answer, Receipt), answer
        return answer.attempt_id

    def judge(
        self,
        login: str = "anna",
        text: str | None = None,
        grade: NewGrade | None = None,
        *,
        task: int | None = None,
        files: dict[str, bytes] | None = None,
    ) -> int:
        """Hand in, claim and judge with that grade; `files` are left in the file store. Returns the attempt."""
        attempt_id = self.hand_in(login, text, task=task)
        claimed = claims.claim(self.store, "w1", ("cpu",))
        assert isinstance(claimed, claims.Claimed)
        assert claimed.attempt_id == attempt_id, "something else was waiting"
        left = [
            StoredFile(name, self.files.put(content), len(content)) for name, content in (files or {}).items()
        ]
        attempt_endings.finish(self.store, attempt_id, claimed.lease_token, grade or verdict_of(), left)
        return attempt_id

    def join(
        self, login: str, role: Role = Role.LEARNER, *, section: str | None = None, course: int | None = None
    ) -> int:
        """Let somebody take part, in the first course unless another is named; with an account if they have none."""
        if login not in self.people:
            self.people[login] = people.add_person(self.store, login, login.title(), password=PASSWORD)
        enrolments.enrol(
            self.store, course or self.course, self.people[login], role, details=EnrolmentDetails(section)
        )
        return self.people[login]

    def token(self, login: str, scope: Scope = Scope.MANAGE, lifetime_s: float | None = None) -> str:
        return tokens.issue_token(
            self.store, self.people[login], "test", scope, lifetime_s=lifetime_s, actor_id=None
        )

    def client(self, login: str | None = None, **options: Any) -> Browser:
        """A browser; signed in where a login is given."""
        browser = Browser(self.app, base_url="http://testserver", follow_redirects=False, **options)
        if login is not None:
            account = people.account(self.store, self.people[login])
            assert account is not None
            browser.sign_in_as(self.service, account)
        return browser

    def program(self, token: str | None) -> TestClient:
        """A program that shows a token."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return TestClient(self.app, base_url="http://testserver", headers=headers, follow_redirects=False)


class Browser(TestClient):
    """A client with a cookie jar that sends the forgery token of its session along, as our pages' forms do."""

    service: WebService | None = None

    def sign_in_as(self, service: WebService, account: people.Account) -> None:
        from starlette.responses import Response

        response = Response()
        service.sessions.start(response, account, secure=False)
        name, value = response.headers["set-cookie"].split(";")[0].split("=", 1)
        self.cookies.set(name, value)
        self.service = service
        self.headers["X-CSRF-Token"] = self.csrf()

    def csrf(self) -> str:
        """The forgery token of this session."""
        from starlette.requests import Request

        assert self.service is not None
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        request = Request({"type": "http", "headers": [(b"cookie", cookies.encode())]})
        session = self.service.sessions.read(request, secure=False)
        assert session is not None
        return csrf.token(self.service.secret, session.nonce)

    def form(self, page: str) -> dict[str, str]:
        """The hidden fields of a page's forms."""
        text = self.get(page).text
        return dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', text))


def make_school(database: Path | str, folder: Path, **more: Any) -> School:
    """The two courses over a database that has our tables."""
    service = _open(database, folder, **more)
    return School(service, create_app(service), *_furnish(service))


def _open(database: Path | str, folder: Path, **more: Any) -> WebService:
    url = database if isinstance(database, str) else f"sqlite:///{database}"
    return open_service(
        Settings(
            state_dir=folder, database_url=url, **{"secret_key": "s" * 40, "submits_per_minute": 0, **more}
        )
    )


Furniture: TypeAlias = tuple[int, int, dict[str, int], int, dict[str, int]]
"""Numbers of all that a school has, as `School` takes them."""


def _furnish(service: WebService) -> Furniture:
    store = service.store
    ids = {
        login: people.add_person(store, login, login.title(), role, password=PASSWORD)
        for login, role in (
            ("anna", Role.LEARNER),
            ("ben", Role.LEARNER),
            ("ines", Role.INSTRUCTOR),
            ("olga", Role.LEARNER),
            ("otto", Role.INSTRUCTOR),
            ("ada", Role.ADMIN),
            ("robot", Role.CI),
        )
    }
    course = courses.add_course(store, "ddp", "Distributed training")
    other = courses.add_course(store, "other", "Another course")
    for login, where, role in (
        ("anna", course, Role.LEARNER),
        ("ben", course, Role.LEARNER),
        ("robot", course, Role.LEARNER),
        ("ines", course, Role.INSTRUCTOR),
        ("olga", other, Role.LEARNER),
        ("otto", other, Role.INSTRUCTOR),
    ):
        enrolments.enrol(store, where, ids[login], role)
    set_tasks = {name: _set(store, course, name) for name in TASKS}
    return course, other, set_tasks, _set(store, other, TASKS[0]), ids


@cache
def _task(name: str) -> Task:
    return load_task(name)


def _set(store: Store, course_id: int, name: str) -> int:
    task = _task(name)
    return courses.set_task(store, course_id, name, "cpu", TaskTerms(task.title, task.version))


@pytest.fixture(scope="session")
def furnished(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Furniture]:
    """State of the two courses, to be copied, and the numbers in it."""
    folder = tmp_path_factory.mktemp("furnished")
    shutil.copy(empty_database, folder / "grader.db")
    service = _open(folder / "grader.db", folder)
    furniture = _furnish(service)
    with service.store.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    service.store.close()
    return folder, furniture


@pytest.fixture
def school(furnished: tuple[Path, Furniture], tmp_path: Path) -> Iterator[School]:
    """The two courses, in a database of their own."""
    folder, furniture = furnished
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    service = _open(tmp_path / "grader.db", tmp_path)
    # Tests may add to what is theirs.
    yield School(service, create_app(service), *copy.deepcopy(furniture))
    service.store.close()


@dataclass
class Served:
    """A school behind a real server."""

    school: School
    url: str

    def client(self, **options: Any) -> httpx.Client:
        return httpx.Client(base_url=self.url, **options)


@pytest.fixture
def served(school: School) -> Iterator[Served]:
    """The same, behind a real uvicorn on a free port: for browsers and for whatever needs a socket."""
    with serving(school.app) as url:
        yield Served(school, url)


class serving:  # noqa: N801 - reads as what it does: `with serving(app) as url:`
    """Run an application on a free port of this machine, in a thread."""

    def __init__(self, app: Any) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                http=TimedConnection,
                log_level="warning",
                lifespan="off",
                timeout_graceful_shutdown=2,
            )
        )
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)

    def __enter__(self) -> str:
        self._thread.start()
        deadline = time.monotonic() + 20
        while not self._server.started:
            assert time.monotonic() < deadline, "the server does not start"
            time.sleep(0.01)
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(20)
        self._socket.close()
