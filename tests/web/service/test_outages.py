"""What the service needs goes away and comes back: it says so, loses nothing, and goes on by itself."""

from __future__ import annotations

import shutil
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import event
from starlette.testclient import TestClient

from grader.store import database, schema
from grader.store.attempts.attempts import AttemptFilter, attempts
from grader.store.database import Store
from grader.store.tables.api_token import Scope
from grader.web.api import courses
from tests.store.conftest import Server, running_server, server_programs
from tests.web.conftest import SCRIPT, School, make_school


def _submit(school: School, program: TestClient, number: int) -> httpx2.Response:
    body = {"files": [{"path": "train.py", "text": f"# {number}\n{SCRIPT}"}]}
    answer: httpx2.Response = program.post(f"/api/v1/course-tasks/{school.task}/submissions", json=body)
    return answer


def test_a_locked_database_is_said_to_be_away_and_nothing_is_half_done(
    empty_database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_S", 0.2)
    path = tmp_path / "grader.db"
    path.write_bytes(empty_database.read_bytes())
    school = make_school(path, tmp_path)
    program = school.program(school.token("anna", Scope.SUBMIT))
    assert _submit(school, program, 1).status_code == 202
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    away = _submit(school, program, 2)
    assert away.status_code == 503
    assert int(away.headers["retry-after"]) > 0
    assert away.json()["error"]["kind"] == "unavailable"
    # Reading goes on.
    assert school.client("anna").get("/").status_code == 200
    other.execute("ROLLBACK")
    other.close()
    assert _submit(school, program, 2).status_code == 202
    assert len(attempts(school.store, AttemptFilter())) == 2
    school.store.close()


def test_a_full_disk_is_no_ones_lost_submission(empty_database: Path, tmp_path: Path) -> None:
    path = tmp_path / "grader.db"
    path.write_bytes(empty_database.read_bytes())
    school = make_school(path, tmp_path)
    program = school.program(school.token("anna", Scope.SUBMIT))
    assert _submit(school, program, 1).status_code == 202
    full = True

    @event.listens_for(school.store.engine, "connect")
    def limit(connection: sqlite3.Connection, _record: object) -> None:
        # What SQLite says when the disk takes nothing more, at a size of our choice.
        if full:
            connection.execute("PRAGMA max_page_count = 1")

    school.store.close()
    body = {"files": [{"path": "train.py", "text": "#" * 500_000}]}
    address = f"/api/v1/course-tasks/{school.task}/submissions"
    assert program.post(address, json=body).status_code == 503
    full = False
    school.store.close()
    assert program.post(address, json=body).status_code == 202
    assert len(attempts(school.store, AttemptFilter())) == 2
    school.store.close()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    programs = server_programs()
    if programs is None:
        pytest.skip("no PostgreSQL server found; `apt-get install postgresql` brings one")
    with running_server(programs, "/tmp", "fsync=off") as made:
        yield made


def test_a_database_that_restarts_is_waited_for(server: Server, tmp_path: Path) -> None:
    server.sql("CREATE DATABASE school")
    store = Store(server.url("school"))
    schema.upgrade(store)
    store.close()
    school = make_school(server.url("school"), tmp_path)
    program, browser = school.program(school.token("anna", Scope.SUBMIT)), school.client("anna")
    assert _submit(school, program, 1).status_code == 202
    assert browser.get("/readyz").status_code == 200
    server.stop(signal.SIGINT)
    away = _submit(school, program, 2)
    assert (away.status_code, away.json()["error"]["kind"]) == (503, "unavailable")
    page = browser.get("/")
    assert page.status_code == 503
    assert page.headers["retry-after"] == away.headers["retry-after"]
    assert "<h1>" in page.text
    assert "psycopg" not in page.text
    assert str(server.folder) not in page.text + away.text
    assert browser.get("/healthz").status_code == 200
    ready = browser.get("/readyz")
    assert (ready.status_code, ready.json()["checks"]["database"]) == (503, "does not answer")
    server.start()
    assert _submit(school, program, 2).status_code == 202
    assert browser.get("/").status_code == 200
    assert browser.get("/readyz").status_code == 200
    assert len(attempts(school.store, AttemptFilter())) == 2
    school.store.close()


def test_files_that_cannot_be_written_make_it_unready(school: School, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "files", ignore_errors=True)
    (tmp_path / "files").write_text("in the way")
    ready = school.client().get("/readyz")
    assert ready.status_code == 503
    assert ready.json()["checks"]["files"].startswith("cannot be written")
    (tmp_path / "files").unlink()
    assert school.client().get("/readyz").status_code == 200


def test_a_fault_of_ours_shows_nothing_of_the_inside(
    school: School, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret-of-the-inside")

    monkeypatch.setattr(courses, "courses", broken)
    program = TestClient(
        school.app,
        headers={"Authorization": f"Bearer {school.token('anna')}"},
    )
    answer = program.get("/api/v1/courses")
    assert answer.status_code == 500
    assert "secret-of-the-inside" not in answer.text
    assert "secret-of-the-inside" in caplog.text
    assert answer.headers["content-security-policy"]
