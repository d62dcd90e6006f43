"""The database goes away, is locked, or its disk is full: nothing half done, and work goes on by itself afterwards."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import func, select, text

from grader.errors import EXIT_INFRA_ERROR
from grader.store import database
from grader.store.attempts import attempt_endings, attempts
from grader.store.attempts.attempt_endings import AttemptEnding
from grader.store.database import Store, StoreUnavailableError
from grader.store.queue.claims import Claimed, claim
from grader.store.tables import AttemptRow, OutboxRow, SubmissionRow
from tests.store.campus import Campus, verdict_of
from tests.store.conftest import Databases, Server

CUT_OFF = """
import os, sys
from grader.model.submission import SourceFile, Submission
from grader.store.attempts import submissions
from grader.store.database import Store
from sqlalchemy import event

store = Store(sys.argv[1])

def die(_connection, _cursor, statement, *_):
    if statement.startswith("INSERT INTO " + sys.argv[4]):
        os.kill(os.getpid(), 9)

event.listen(store.engine, "after_cursor_execute", die)
submissions.submit(store, int(sys.argv[2]), int(sys.argv[3]), Submission("x", (SourceFile("train.py", "x = 1"),)))
"""


@pytest.mark.parametrize("table", ["sources", "submissions", "attempts", "events", "outbox"])
def test_killed_in_the_middle_of_a_submission(campus: Campus, table: str, repository: Path) -> None:
    url = campus.store.url.render_as_string(hide_password=False)
    done = subprocess.run(
        [sys.executable, "-c", CUT_OFF, url, str(campus.anna), str(campus.task), table],
        cwd=repository,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == -9, done.stderr
    with campus.store.read() as connection:
        counts = [
            connection.execute(select(func.count()).select_from(one)).scalar_one()
            for one in (SubmissionRow, AttemptRow, OutboxRow)
        ]
    assert counts == [0, 0, 0]
    campus.queue(campus.anna, "x = 1")


def test_a_server_that_restarts_is_found_again(server: Server, postgresql: Databases) -> None:
    campus = Campus(postgresql.clean())
    attempt_id = campus.queue(campus.anna)
    claimed = campus.claim()
    server.stop(signal.SIGQUIT)
    try:
        with pytest.raises(StoreUnavailableError) as refused:
            campus.queue(campus.ben)
        assert refused.value.exit_code == EXIT_INFRA_ERROR
        with pytest.raises(StoreUnavailableError):
            attempts.attempt(campus.store, attempt_id)
    finally:
        server.start()
    ending = attempt_endings.finish(campus.store, attempt_id, claimed.lease_token, verdict_of())
    assert ending is AttemptEnding.JUDGED, "the lease outlived the restart"
    postgresql.close()


def test_a_server_that_dies_within_a_transaction(server: Server, postgresql: Databases) -> None:
    campus = Campus(postgresql.clean())

    def delete_everybody() -> None:
        with campus.store.write() as connection:
            connection.execute(text("DELETE FROM people"))
            server.stop(signal.SIGQUIT)
            server.start()
            connection.execute(text("DELETE FROM courses"))

    with pytest.raises(StoreUnavailableError):
        delete_everybody()
    campus.queue(campus.anna)
    postgresql.close()


def test_a_lock_that_is_held_too_long_is_an_answer(
    databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody holds the row or the file; others wait, give up in order, and succeed once it is free."""
    monkeypatch.setattr(database, "BUSY_S", 0.3)
    campus = Campus(databases.open(databases.clean().url.render_as_string(hide_password=False)))
    holder = databases.open(campus.store.url.render_as_string(hide_password=False))
    with holder.write() as connection:
        connection.execute(text("UPDATE enrolments SET created_at = created_at"))
        with pytest.raises(StoreUnavailableError, match=r"lock"):
            campus.queue(campus.anna)
        with campus.store.read() as reading:
            assert reading.execute(select(func.count()).select_from(AttemptRow)).scalar_one() == 0
    campus.queue(campus.anna)


def test_threads_of_one_process_wait_for_each_other(campus: Campus) -> None:
    """Many more at once than the pool has connections: none fails, none is lost."""

    def work(person: int) -> None:
        for _ in range(5):
            campus.queue(person)

    people = [campus.person(f"p{number}") for number in range(30)]
    with ThreadPoolExecutor(len(people)) as pool:
        list(pool.map(work, people))
    got = 0
    while isinstance(claim(campus.store, "w", ["cpu"]), Claimed):
        got += 1
    assert got == 150


def test_a_full_disk_leaves_no_half_submission(sqlite: Databases) -> None:
    """SQLite is told that the file may grow no further; afterwards it may."""
    campus = Campus(sqlite.open())
    with campus.store.engine.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
    cap = pages + 8
    from sqlalchemy import event

    def limit(connection: sqlite3.Connection, _record: object) -> None:
        with closing(connection.cursor()) as cursor:
            cursor.execute(f"PRAGMA max_page_count={cap}")

    event.listen(campus.store.engine, "connect", limit)
    campus.store.close()
    taken: list[int] = []

    def fill() -> None:
        while len(taken) < 1000:
            taken.append(campus.queue(campus.anna, f"x = '{'y' * 5000}{len(taken)}'\n"))

    with pytest.raises(StoreUnavailableError, match="full"):
        fill()
    cap = 1 << 30
    campus.store.close()
    with campus.store.read() as reading:
        for table in (SubmissionRow, AttemptRow, OutboxRow):
            assert reading.execute(select(func.count()).select_from(table)).scalar_one() == len(taken)
    campus.queue(campus.anna)


def test_times_are_utc_whatever_the_host_and_the_server_think(campus: Campus) -> None:
    from datetime import UTC, datetime, timedelta, timezone

    east = timezone(timedelta(hours=9))
    due = datetime(2030, 3, 31, 2, 30, 0, 123456, tzinfo=east)
    campus.set_task(due_at=due)
    from grader.store.courses.courses import tasks_of

    (task,) = tasks_of(campus.store, campus.course)
    assert task.terms.due_at == due
    assert task.terms.due_at is not None
    assert task.terms.due_at.tzinfo is UTC
    with pytest.raises(Exception, match="without its zone"):
        campus.set_task(due_at=datetime(2030, 3, 31))  # noqa: DTZ001
    with campus.store.read() as connection:
        from grader.store.clock import database_now, now

        earlier, later = connection.execute(select(database_now(-90.0), database_now(0.5))).one()
        assert timedelta(seconds=90) <= later - earlier < timedelta(seconds=92)
        assert abs(now(connection) - datetime.now(UTC)) < timedelta(minutes=5)


def test_a_store_says_where_it_is_without_its_password() -> None:
    store = Store("postgresql://grader:secret@127.0.0.1:1/none")
    with pytest.raises(StoreUnavailableError) as refused, store.read():
        pass
    assert "secret" not in str(refused.value)
    store.close()
