"""Files come back as they were or not at all, in a folder and in the database alike."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from grader.store.database import Store
from grader.store.files import (
    DatabaseFiles,
    FileDamagedError,
    FileMissingError,
    FileStore,
    FileTooLargeError,
    FolderFiles,
    open_files,
)

Opened = Callable[[int], FileStore]


@pytest.fixture(params=["folder", "database"])
def opened(request: pytest.FixtureRequest, store: Store, tmp_path: Path) -> Opened:
    """Opens the file store, with a cap in bytes."""
    if request.param == "folder":
        return lambda cap: FolderFiles(tmp_path / "files", cap)
    return lambda cap: DatabaseFiles(store, cap)


def test_what_goes_in_comes_out_under_its_hash(opened: Opened) -> None:
    files = opened(1000)
    for data in (b"", b"\0\xff" * 100, "naïve".encode()):
        digest = files.put(data)
        assert digest == hashlib.sha256(data).hexdigest()
        assert files.get(digest) == data
        assert files.put(iter([data[:3], data[3:]])) == digest, "in parts it is the same file"


@pytest.mark.one_database
def test_more_than_the_cap_leaves_nothing(opened: Opened, tmp_path: Path) -> None:
    files = opened(100)
    assert files.get(files.put(b"x" * 100))
    drawn = 0

    def endless() -> Iterator[bytes]:
        nonlocal drawn
        while True:
            drawn += 1
            yield b"y" * 30

    with pytest.raises(FileTooLargeError):
        files.put(endless())
    assert drawn == 4, "it reads no further than it must"
    kept = [path for path in (tmp_path / "files").rglob("*") if path.is_file()]
    assert len(kept) == (1 if isinstance(files, FolderFiles) else 0)


@pytest.mark.one_database
def test_what_breaks_off_leaves_nothing(opened: Opened, tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield b"first half"
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        opened(1000).put(broken())
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and "files" in path.parts]


@pytest.mark.one_database
def test_missing_and_removed(opened: Opened) -> None:
    files = opened(1000)
    digest = files.put(b"data")
    assert files.remove(digest)
    assert not files.remove(digest)
    with pytest.raises(FileMissingError):
        files.get(digest)


@pytest.mark.one_database
@pytest.mark.parametrize(
    "name", ["", "..", "../../etc/passwd", "A" * 64, "a" * 63, "a" * 64 + "\n", "a/" * 32]
)
def test_only_hashes_are_names(opened: Opened, name: str) -> None:
    files = opened(1000)
    for ask in (files.get, files.remove):
        with pytest.raises(ValueError, match="SHA-256"):
            ask(name)


def test_damage_is_noticed_and_healed(opened: Opened, store: Store, tmp_path: Path) -> None:
    files = opened(1000)
    digest = files.put(b"evidence")
    if isinstance(files, FolderFiles):
        (path,) = [path for path in (tmp_path / "files").rglob("*") if path.is_file()]
        path.chmod(0o600)
        path.write_bytes(b"forgery!")
    else:
        with store.write() as connection:
            connection.execute(text("UPDATE blobs SET data = :data"), {"data": b"forgery!"})
    with pytest.raises(FileDamagedError):
        files.get(digest)
    assert files.put(b"evidence") == digest
    assert files.get(digest) == b"evidence"


def test_many_writers_of_one_file(opened: Opened) -> None:
    files = opened(1 << 20)
    data = b"z" * 300_000
    found: list[bytes] = []

    def work() -> None:
        found.append(files.get(files.put(data)))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [data] * 8


@pytest.mark.one_database
def test_the_setting_says_where(store: Store, tmp_path: Path) -> None:
    assert isinstance(open_files(store, "database", tmp_path), DatabaseFiles)
    for place, root in (("", tmp_path / "files"), (str(tmp_path / "shared"), tmp_path / "shared")):
        files = open_files(store, place, tmp_path / "files")
        assert isinstance(files, FolderFiles)
        assert files.root == root
