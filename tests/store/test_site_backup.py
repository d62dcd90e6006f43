"""A site's backup is one file with the database and everything that attempts left; a restore brings all of it back."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader import cli
from grader.errors import InfraError, UsageError
from grader.settings import settings
from grader.store import database_backup, site_backup
from grader.store.attempts import attempt_endings
from grader.store.attempts.attempt_endings import StoredFile
from grader.store.attempts.attempts import AttemptFilter, attempts, files_of
from grader.store.database import Store
from grader.store.files import DatabaseFiles, FileStore, FolderFiles
from tests.store.campus import Campus, verdict_of
from tests.store.conftest import Databases
from tests.store.test_schema import rows

REPORT = b"<!doctype html><title>a report</title>" * 1000


@pytest.fixture
def store(databases: Databases) -> Iterator[Store]:
    """A database that nobody else gets afterwards."""
    yield databases.open()
    databases.close()


def judge(campus: Campus, files: FileStore, report: bytes = REPORT) -> int:
    """An attempt that left a report."""
    attempt_id = campus.queue(campus.anna)
    claimed = campus.claim()
    left = StoredFile("report.html", files.put(report), len(report))
    attempt_endings.finish(campus.store, attempt_id, claimed.lease_token, verdict_of(), [left])
    return attempt_id


@pytest.mark.parametrize("place", ["folder", "database"])
def test_reports_come_back_with_the_database(
    campus: Campus, databases: Databases, tmp_path: Path, place: str
) -> None:
    def open_files(store: Store, name: str) -> FileStore:
        return FolderFiles(tmp_path / name) if place == "folder" else DatabaseFiles(store)

    attempt_id = judge(campus, open_files(campus.store, "files"))
    file = tmp_path / "site.tar"
    made = site_backup.back_up_site(campus.store, open_files(campus.store, "files"), file)
    assert (made.size, made.num_files) == (file.stat().st_size, 1 if place == "folder" else 0)
    assert file.stat().st_mode & 0o077 == 0, "it holds password hashes"
    other = databases.open(empty=True)
    elsewhere = open_files(other, "elsewhere")
    site_backup.restore_site(other, elsewhere, file)
    assert rows(other) == rows(campus.store)
    (kept,) = files_of(other, attempt_id)
    assert elsewhere.get(kept.digest) == REPORT
    assert {path.name for path in tmp_path.iterdir()} <= {"site.tar", "files", "elsewhere"}


@pytest.mark.one_database
def test_a_file_that_is_gone_is_said_and_holds_up_no_backup(campus: Campus, tmp_path: Path) -> None:
    files = FolderFiles(tmp_path / "files")
    judge(campus, files, b"one")
    lost = judge(campus, files, b"two")
    (gone,) = files_of(campus.store, lost)
    files.remove(gone.digest)
    made = site_backup.back_up_site(campus.store, files, tmp_path / "site.tar")
    assert (made.num_files, made.lost) == (1, (gone.digest,))


@pytest.mark.one_database
@pytest.mark.parametrize("harm", ["half", "changed", "without its database", "a link instead"])
def test_a_damaged_archive_changes_nothing(campus: Campus, tmp_path: Path, harm: str) -> None:
    files = FolderFiles(tmp_path / "files")
    judge(campus, files)
    file, bad = tmp_path / "site.tar", tmp_path / "bad.tar"
    site_backup.back_up_site(campus.store, files, file)
    content = file.read_bytes()
    if harm == "half":
        bad.write_bytes(content[: len(content) // 2])
    elif harm == "changed":
        bad.write_bytes(content.replace(b"a report", b"a rumour", 1))
    else:
        with tarfile.open(bad, "w") as made:
            link = tarfile.TarInfo("database")
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
            made.addfile(link if harm == "a link instead" else tarfile.TarInfo("something"), io.BytesIO())
    campus.queue(campus.ben)
    before = rows(campus.store)
    with pytest.raises((UsageError, InfraError)):
        site_backup.restore_site(campus.store, files, bad, replace=True)
    assert rows(campus.store) == before


@pytest.mark.one_database
def test_a_site_that_is_not_empty_is_replaced_only_when_asked(campus: Campus, tmp_path: Path) -> None:
    files = FolderFiles(tmp_path / "files")
    judge(campus, files)
    site_backup.back_up_site(campus.store, files, tmp_path / "site.tar")
    early = rows(campus.store)
    campus.queue(campus.ben)
    elsewhere = FolderFiles(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="--replace"):
        site_backup.restore_site(campus.store, elsewhere, tmp_path / "site.tar")
    assert not (tmp_path / "elsewhere").exists(), "nothing was unpacked for a restore that does not happen"
    site_backup.restore_site(campus.store, files, tmp_path / "site.tar", replace=True)
    assert rows(campus.store) == early


def test_a_backup_of_the_database_alone_is_taken_too(
    campus: Campus, databases: Databases, tmp_path: Path
) -> None:
    campus.judge(campus.anna)
    database_backup.backup(campus.store, tmp_path / "plain")
    other = databases.open(empty=True)
    site_backup.restore_site(other, FolderFiles(tmp_path / "files"), tmp_path / "plain")
    assert rows(other) == rows(campus.store)


@pytest.mark.one_database
def test_the_commands_back_up_and_restore_a_whole_site(
    campus: Campus,
    databases: Databases,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def at(store: Store, place: str) -> None:
        monkeypatch.setenv("GRADER_DATABASE_URL", store.url.render_as_string(hide_password=False))
        monkeypatch.setenv("GRADER_FILE_STORE", str(tmp_path / place))
        settings.cache_clear()

    try:
        attempt_id = judge(campus, FolderFiles(tmp_path / "files"))
        at(campus.store, "files")
        assert cli.main(["db", "backup", str(tmp_path / "site.tar"), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["files"] == 1
        assert cli.main(["db", "backup", str(tmp_path / "site.tar")]) == 2, "a backup never overwrites one"
        other = databases.open(empty=True)
        at(other, "elsewhere")
        assert cli.main(["db", "restore", str(tmp_path / "site.tar")]) == 0
    finally:
        settings.cache_clear()
    assert [one.id for one in attempts(other, AttemptFilter())] == [attempt_id]
    (kept,) = files_of(other, attempt_id)
    assert FolderFiles(tmp_path / "elsewhere").get(kept.digest) == REPORT
