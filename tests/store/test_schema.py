"""Migrations make our tables; a database of the six steps before the first release is upgraded, any other refused."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import inspect, make_url, text
from sqlalchemy.exc import IntegrityError

from grader import cli
from grader.errors import InfraError, UsageError
from grader.model.grade import Verdict
from grader.settings import settings
from grader.store import events, schema
from grader.store.attempts import attempt_endings, attempts, submissions
from grader.store.courses import courses
from grader.store.courses.extensions import extensions_of
from grader.store.database import Store
from grader.store.files import DatabaseFiles
from grader.store.grading import certificates, grades, reviews
from grader.store.grading.gradebook import gradebook
from grader.store.people import invitations, tokens
from grader.store.queue import claims, queue
from grader.store.tables import Base
from grader.store.tables.api_token import Scope
from grader.worker.database_wait import wait_for_database
from tests.store.campus import Campus, script, verdict_of
from tests.store.conftest import Databases


@pytest.fixture
def store(databases: Databases) -> Iterator[Store]:
    """A database that nobody else gets afterwards."""
    yield databases.open()
    databases.close()


Rows = dict[str, set[frozenset[tuple[str, str]]]]
"""Table → its rows, each as its columns' names and what stands there as text."""


def rows(store: Store) -> Rows:
    """Everything in a database."""
    with store.read() as connection:
        return {
            table: {
                frozenset((name, repr(value)) for name, value in row.items())
                for row in connection.execute(text(f"SELECT * FROM {table}")).mappings()
            }
            for table in inspect(connection).get_table_names()
            if table != "alembic_version"
        }


def differences(store: Store) -> list[object]:
    """What the database's tables differ in from ours, as Alembic's autogenerate sees it."""
    with store.read() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        return list(compare_metadata(context, Base.metadata))


def shape(store: Store) -> dict[str, Any]:
    """Columns, keys, checks and indexes of every table, as the database tells them."""
    with store.read() as connection:
        seen = inspect(connection)
        return {
            table: {
                "columns": [
                    (c["name"], str(c["type"]), c["nullable"], c["default"]) for c in seen.get_columns(table)
                ],
                "primary key": seen.get_pk_constraint(table)["constrained_columns"],
                "foreign keys": sorted(
                    (f["name"], f["constrained_columns"], f["referred_table"], str(f["options"]))
                    for f in seen.get_foreign_keys(table)
                ),
                "unique": sorted((u["name"], u["column_names"]) for u in seen.get_unique_constraints(table)),
                # A dump that was read back spells the casts of a CHECK in another way.
                "checks": sorted(
                    (c["name"], re.sub(r"::(text|character varying)(\[\])?", "", c["sqltext"]))
                    for c in seen.get_check_constraints(table)
                ),
                "indexes": sorted(
                    (
                        i["name"],
                        i["column_names"],
                        i["unique"],
                        str(
                            {
                                k: str(v)
                                for k, v in i.get("dialect_options", {}).items()
                                if k.endswith("where")
                            }
                        ),
                    )
                    for i in seen.get_indexes(table)
                ),
            }
            for table in seen.get_table_names()
            if table != "alembic_version"
        }


@pytest.fixture
def six_steps(databases: Databases) -> Iterator[Store]:
    """A database that went through the six steps from before the first release, with something in every table."""
    url = databases.url(empty=True)
    name = str(make_url(url).database)
    made = (Path(__file__).parent / "version_0006" / f"{databases.kind}.sql").read_text(encoding="utf-8")
    if databases.server is not None:
        databases.server.sql(made, name)
    else:
        with closing(sqlite3.connect(name)) as connection:
            connection.executescript(made)
    yield databases.open(url)
    databases.close()


@pytest.fixture
def earlier(six_steps: Store) -> Store:
    """The same, brought to our version."""
    schema.upgrade(six_steps)
    return six_steps


def stamp(store: Store, version: str) -> None:
    """Let a database say that it is at that version."""
    with store.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :version"), {"version": version})


@contextmanager
def commands_on(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Commands work on this database within the block."""
    monkeypatch.setenv("GRADER_DATABASE_URL", store.url.render_as_string(hide_password=False))
    settings.cache_clear()
    try:
        yield
    finally:
        settings.cache_clear()


def test_migrations_make_our_tables(store: Store, databases: Databases) -> None:
    assert differences(store) == []
    direct = databases.open(empty=True)
    with direct.write() as connection:
        Base.metadata.create_all(connection)
    assert shape(store) == shape(direct)


def test_differences_are_noticed(store: Store) -> None:
    with store.write() as connection:
        connection.execute(text("DROP INDEX ix_attempts_batch"))
        connection.execute(text("ALTER TABLE people ADD COLUMN nickname VARCHAR(10)"))
    assert len(differences(store)) == 2


def test_the_first_migration_makes_what_six_made(databases: Databases, six_steps: Store) -> None:
    first = databases.open(empty=True)
    schema.upgrade(first, "0006")
    assert shape(first) == shape(six_steps)


def test_a_database_of_the_six_steps_is_upgraded_and_loses_nothing(six_steps: Store, store: Store) -> None:
    before = rows(six_steps)
    assert all(before.values()), "the database has something in every table"
    schema.upgrade(six_steps)
    assert schema.status(six_steps).up_to_date
    assert differences(six_steps) == []
    assert shape(six_steps) == shape(store)
    after = rows(six_steps)
    assert {table: len(after[table]) for table in before} == {
        table: len(there) for table, there in before.items()
    }
    for table, there in before.items():
        assert all(any(row <= now for now in after[table]) for row in there), table
    schema.downgrade(six_steps, "0006")
    assert rows(six_steps) == before


def test_what_a_database_of_the_six_steps_holds_is_read(earlier: Store) -> None:
    course = courses.course(earlier, 1)
    assert course is not None
    assert (course.title, course.time_zone) == ("Distributed training", "Europe/Berlin")
    book = gradebook(earlier, course.id)
    assert [task.task for task in book.tasks] == ["ddp-toy", "ddp-late", "ddp-gone"]
    anna, ben = book.rows
    assert (anna.login, anna.cells[1].points, anna.cells[1].verdict) == ("anna", 0.0, Verdict.REJECTED)
    result = ben.cells[1].result
    assert result is not None
    assert (ben.login, result.points, result.decided) == ("ben", 95.0, True)
    grade = grades.grade_of(earlier, 4)
    assert grade is not None
    assert (grade.points, json.loads(grade.document)["verdict"]) == (60.0, "rejected")
    (report,) = attempts.files_of(earlier, 4)
    assert DatabaseFiles(earlier).get(report.digest) == b"a report \x00\xff"
    source = submissions.source_of(earlier, 1)
    assert source is not None
    assert source.files[0].text == "print(0)\n"
    assert [one.text for one in reviews.comments_of(earlier, 3)] == ["see line 3"]
    assert [one.reason for one in reviews.overrides_of(earlier, 3)] == ["a fair approach"]
    assert [one.kind for one in events.events_of(earlier, 3)] == [
        *("queued", "claimed", "judged", "overridden", "commented")
    ]
    certificate = certificates.certificate_of(earlier, course.id, ben.person_id)
    assert certificate is not None
    assert certificate.revoked_at is None
    (token,) = tokens.tokens_of(earlier, anna.person_id)
    assert (token.name, token.scope) == ("laptop", Scope.SUBMIT)
    (pause,) = queue.queue_state(earlier).pauses
    assert (pause.gate, pause.reason) == ("gpu1", "a fan is broken")
    (extension,) = extensions_of(earlier, course.id)
    assert (extension.name, extension.given.reason) == ("Anna", "ill")
    (invitation,) = invitations.invitations_of(earlier, course.id)
    assert invitation.max_uses == 3


def test_a_database_of_the_six_steps_is_worked_with(earlier: Store) -> None:
    claimed = claims.claim(earlier, "w1", ["cpu"])
    assert isinstance(claimed, claims.Claimed)
    assert (claimed.attempt_id, claimed.task) == (5, "ddp-late")
    ending = attempt_endings.finish(earlier, claimed.attempt_id, claimed.lease_token, verdict_of())
    assert ending is attempt_endings.AttemptEnding.JUDGED
    answer = submissions.submit(earlier, claimed.person_id, claimed.course_task_id, script("print(99)\n"))
    assert isinstance(answer, submissions.Receipt)
    assert answer.attempt_id == 6, "numbers go on where they were"


@pytest.mark.one_database
def test_the_command_upgrades_a_database_of_the_six_steps(
    six_steps: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with commands_on(six_steps, monkeypatch):
        assert cli.main(["db", "status"]) == 1
        assert "0006" in capsys.readouterr().out
        for action in ("upgrade", "status"):
            assert cli.main(["db", action]) == 0
            assert f"is at version {schema.revisions()[-1]}, up to date" in capsys.readouterr().out


@pytest.mark.one_database
@pytest.mark.parametrize("version", ["0001", "0002", "0003", "0004", "0005"])
def test_a_database_from_before_the_first_release_is_refused(store: Store, version: str) -> None:
    stamp(store, version)
    before = rows(store)
    for move in (schema.upgrade, lambda store: schema.downgrade(store, "base")):
        with pytest.raises(UsageError, match=rf"version {version}, from before .* v0006_time_zones\.py"):
            move(store)
    assert schema.status(store).current == version
    assert rows(store) == before
    with pytest.raises(InfraError, match=f"version {version}, from before"):
        wait_for_database(store)


@pytest.mark.one_database
def test_the_command_says_what_to_do_with_a_database_from_before_the_first_release(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stamp(store, "0003")
    with commands_on(store, monkeypatch):
        assert cli.main(["db", "status"]) == 1
        assert "is at version 0003, not ours: " in capsys.readouterr().out
        for words in (["upgrade"], ["downgrade", "--to", "base"]):
            assert cli.main(["db", *words]) == 2
            said = capsys.readouterr().err
            assert "or begin with an empty database" in said
            assert "Traceback" not in said


@pytest.mark.one_database
def test_a_database_of_a_newer_grader_is_refused(store: Store) -> None:
    stamp(store, "0099")
    with pytest.raises(UsageError, match="version 0099, which this grader does not know"):
        schema.upgrade(store)
    assert schema.status(store).current == "0099"


def test_to_nothing_and_back(earlier: Store, store: Store) -> None:
    schema.downgrade(earlier, "base")
    assert rows(earlier) == {}
    assert schema.status(earlier).current is None
    schema.upgrade(earlier)
    assert schema.status(earlier).up_to_date
    assert not any(rows(earlier).values())
    assert shape(earlier) == shape(store)


def test_a_failed_step_leaves_everything_as_it_was(databases: Databases) -> None:
    store = databases.open(empty=True)
    with store.write() as connection:
        connection.execute(text("CREATE TABLE outbox (something INTEGER)"))
    with pytest.raises(Exception, match="outbox"):
        schema.upgrade(store)
    assert schema.status(store).current is None
    assert rows(store) == {"outbox": set()}
    with store.write() as connection:
        connection.execute(text("DROP TABLE outbox"))
    schema.upgrade(store)
    assert schema.status(store).up_to_date


@pytest.mark.one_database
def test_unknown_versions_are_refused(store: Store) -> None:
    for move in (schema.upgrade, schema.downgrade):
        with pytest.raises(UsageError, match="9999"):
            move(store, "9999")
    assert schema.status(store).up_to_date


def test_references_hold_after_a_migration(databases: Databases) -> None:
    store = databases.open(empty=True)
    schema.upgrade(store)
    campus = Campus(store)
    attempt = campus.judge(campus.anna)
    with pytest.raises(IntegrityError), store.write() as connection:
        connection.execute(
            text("UPDATE attempts SET person_id = 424242 WHERE id = :attempt"), {"attempt": attempt}
        )
