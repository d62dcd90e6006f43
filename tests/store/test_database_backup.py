"""A backup is one file that holds everything; a restore puts all of it back, or leaves the database as it was."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader import cli
from grader.errors import InfraError, UsageError
from grader.settings import settings
from grader.store import database_backup, schema
from grader.store.attempts.attempts import AttemptFilter, attempts
from grader.store.database import Store
from tests.store.campus import Campus
from tests.store.conftest import Databases
from tests.store.test_schema import differences, rows


@pytest.fixture
def store(databases: Databases) -> Iterator[Store]:
    """A database that nobody else gets afterwards."""
    yield databases.open()
    databases.close()


def test_backup_and_restore_elsewhere(campus: Campus, databases: Databases, tmp_path: Path) -> None:
    campus.judge(campus.anna)
    campus.queue(campus.ben, "x = '\0'\n")
    before = rows(campus.store)
    file = tmp_path / "backup"
    assert database_backup.backup(campus.store, file) == file.stat().st_size
    assert file.stat().st_mode & 0o077 == 0, "it holds password hashes"
    assert [path.name for path in tmp_path.iterdir()] == ["backup"]
    other = databases.open(empty=True)
    database_backup.restore(other, file)
    assert rows(other) == before
    assert schema.status(other).up_to_date
    assert differences(other) == []
    moved = Campus.__new__(Campus)
    moved.store = other
    assert moved.claim().person_id == campus.ben, "work goes on there"


def test_restore_replaces_only_when_asked(campus: Campus, tmp_path: Path) -> None:
    campus.queue(campus.anna)
    database_backup.backup(campus.store, tmp_path / "early")
    early = rows(campus.store)
    campus.queue(campus.anna)
    with pytest.raises(UsageError, match="--replace"):
        database_backup.restore(campus.store, tmp_path / "early")
    assert len(attempts(campus.store, AttemptFilter())) == 2
    database_backup.restore(campus.store, tmp_path / "early", replace=True)
    assert rows(campus.store) == early


def test_what_is_no_backup_changes_nothing(campus: Campus, tmp_path: Path) -> None:
    before = rows(campus.store)
    for content in (b"", b"not a database", b"PGDMP\x01\x0e\x00garbage", b"SQLite format 3\0" + b"\0" * 5000):
        (tmp_path / "file").write_bytes(content)
        with pytest.raises((UsageError, InfraError)):
            database_backup.restore(campus.store, tmp_path / "file", replace=True)
    with pytest.raises(UsageError, match="no file"):
        database_backup.restore(campus.store, tmp_path / "missing", replace=True)
    assert rows(campus.store) == before


def test_a_damaged_backup_changes_nothing(campus: Campus, tmp_path: Path) -> None:
    for _ in range(20):
        campus.queue(campus.anna)
    file = tmp_path / "backup"
    database_backup.backup(campus.store, file)
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    before = rows(campus.store)
    with pytest.raises((UsageError, InfraError)):
        database_backup.restore(campus.store, file, replace=True)
    assert rows(campus.store) == before


def test_backup_while_everybody_works(campus: Campus, databases: Databases, tmp_path: Path) -> None:
    """It holds one state of the database: every attempt has its event and its message."""
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            campus.queue(campus.anna)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        database_backup.backup(campus.store, tmp_path / "backup")
    finally:
        stop.set()
        worker.join()
    other = databases.open(empty=True)
    database_backup.restore(other, tmp_path / "backup")
    held = rows(other)
    assert len(held["attempts"]) == len(held["submissions"]) == len(held["outbox"])


@pytest.mark.one_database
def test_a_backup_never_overwrites(campus: Campus, tmp_path: Path) -> None:
    (tmp_path / "there").write_text("mine")
    with pytest.raises(UsageError, match="there already"):
        database_backup.backup(campus.store, tmp_path / "there")
    assert (tmp_path / "there").read_text() == "mine"
    with pytest.raises(UsageError, match="cannot be written"):
        database_backup.backup(campus.store, tmp_path / "missing" / "file")


def test_missing_programs_are_said_in_clear_words(
    campus: Campus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_backup, "_INSTALLED", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    if campus.store.is_sqlite:
        assert database_backup.backup(campus.store, tmp_path / "backup"), "SQLite needs none"
        return
    with pytest.raises(
        InfraError, match="pg_dump is not installed here; `apt-get install postgresql-client`"
    ):
        database_backup.backup(campus.store, tmp_path / "backup")


@pytest.mark.one_database
def test_the_command(
    databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GRADER_DATABASE_URL", databases.url(empty=True))
    settings.cache_clear()

    def grader(*words: str) -> tuple[int, str]:
        code = cli.main(["db", *words])
        return code, capsys.readouterr().out

    try:
        code, said = grader("status")
        assert (code, "is empty" in said) == (1, True)
        code, said = grader("status", "--json")
        assert code == 1
        told = json.loads(said)
        assert (told["current"], told["head"], told["pending"]) == (
            None,
            schema.revisions()[-1],
            list(schema.revisions()),
        )
        assert grader("upgrade", "--to", "0006")[0] == 0
        code, said = grader("upgrade")
        assert code == 0
        assert "up to date" in said
        assert grader("status")[0] == 0
        file = str(tmp_path / "backup")
        assert grader("backup", file)[0] == 0
        assert grader("restore", file)[0] == 2
        assert grader("restore", file, "--replace")[0] == 0
        assert grader("downgrade")[0] == 2
        assert grader("downgrade", "--to", "0005")[0] == 2
        assert grader("downgrade", "--to", "base")[0] == 0
        assert f"is empty; pending: {' '.join(schema.revisions())}" in grader("status")[1]
        assert grader("restore", file)[0] == 0
        assert grader("status")[0] == 0
        assert grader("status", file)[0] == 2
        assert grader("backup")[0] == 2
    finally:
        settings.cache_clear()


def test_an_address_of_nothing_supported_is_refused() -> None:
    for address in ("mysql://localhost/x", "nonsense", "sqlite://", "sqlite:///:memory:"):
        with pytest.raises(UsageError, match="GRADER_DATABASE_URL"):
            Store(address)
