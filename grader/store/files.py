"""Files under the hash of their bytes: what attempts leave, in a shared folder or in the database itself.

Writing the same bytes twice is one file; a file is whole or not there; what is read is compared with its name. Says
nothing about whose a file is: that is `ArtifactRow`'s.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from sqlalchemy import delete, select

from grader.errors import InfraError
from grader.store.clock import database_now
from grader.store.database import Store
from grader.store.tables import BlobRow
from grader.store.upsert import upsert

MAX_FILE_BYTES = 64 << 20
IN_DATABASE = "database"
_DIGEST = re.compile(r"[0-9a-f]{64}")


class FileTooLargeError(ValueError):
    """More bytes than the store takes; nothing of them was kept."""


class FileMissingError(InfraError):
    """No file of that digest is there."""


class FileDamagedError(InfraError):
    """What is there is not what was written; nothing of it is handed out."""


class FileStore(Protocol):
    """Where files lie. Every method may be called by many processes and hosts at once."""

    max_bytes: int
    """Size of the largest file that is taken."""

    def __hash__(self) -> int:
        """Caches keep what was read from one apart from what was read from another."""

    def put(self, data: bytes | Iterable[bytes]) -> str:
        """Keep these bytes and return their SHA-256, hex.

        Raises:
            FileTooLargeError: more than `max_bytes`; known as soon as that many have come.
            InfraError: they cannot be written.
        """

    def get(self, digest: str) -> bytes:
        """The bytes of that digest, compared with it.

        Raises:
            FileMissingError: there are none.
            FileDamagedError: they have changed.
            ValueError: that is no digest.
        """

    def remove(self, digest: str) -> bool:
        """Remove it; False: it was not there."""


class FolderFiles:
    """Files in a folder, `<root>/ab/cdef…`; shared by several hosts where it is a network file system."""

    def __init__(self, root: Path, max_bytes: int = MAX_FILE_BYTES) -> None:
        self.root = root
        self.max_bytes = max_bytes

    def put(self, data: bytes | Iterable[bytes]) -> str:
        """Keep these bytes; see `FileStore`."""
        sha = hashlib.sha256()
        with self._blamed("written"):
            self.root.mkdir(parents=True, exist_ok=True)
            # Written beside its place and moved there when it is whole and on the disk.
            handle, name = tempfile.mkstemp(dir=self.root, prefix=".new-")
        try:
            try:
                # What the parts' own source raises is not ours to explain.
                for part in _within(data, self.max_bytes):
                    sha.update(part)
                    with self._blamed("written"):
                        _write(handle, part)
                with self._blamed("written"):
                    os.fsync(handle)
            finally:
                os.close(handle)
            with self._blamed("written"):
                place = self._place(sha.hexdigest())
                place.parent.mkdir(exist_ok=True)
                Path(name).chmod(0o640)
                Path(name).replace(place)
                _sync_folder(place.parent)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        return sha.hexdigest()

    def get(self, digest: str) -> bytes:
        """The bytes of that digest; see `FileStore`."""
        place = self._place(digest)
        try:
            data = place.read_bytes()
        except FileNotFoundError:
            raise FileMissingError(f"file {digest} is not in {self.root}") from None
        except OSError as error:
            raise InfraError(f"the file store {self.root} cannot be read: {error.strerror}") from error
        return _verified(digest, data)

    def remove(self, digest: str) -> bool:
        """Remove it; False: it was not there."""
        place = self._place(digest)
        with self._blamed("changed"):
            there = place.exists()
            place.unlink(missing_ok=True)
        return there

    @contextmanager
    def _blamed(self, what: str) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise InfraError(f"the file store {self.root} cannot be {what}: {error.strerror}") from error

    def _place(self, digest: str) -> Path:
        _check(digest)
        return self.root / digest[:2] / digest[2:]


class DatabaseFiles:
    """Files in the database itself, for sites without a shared folder."""

    def __init__(self, store: Store, max_bytes: int = MAX_FILE_BYTES) -> None:
        self._store = store
        self.max_bytes = max_bytes

    def put(self, data: bytes | Iterable[bytes]) -> str:
        """Keep these bytes; see `FileStore`."""
        whole = b"".join(_within(data, self.max_bytes))
        digest = hashlib.sha256(whole).hexdigest()
        values = {"digest": digest, "size": len(whole), "data": whole, "created_at": database_now()}
        with self._store.write() as connection:
            # Written even where it is there: what was damaged is whole again afterwards.
            connection.execute(upsert(connection, BlobRow, ["digest"], values, update=["data", "size"]))
        return digest

    def get(self, digest: str) -> bytes:
        """The bytes of that digest; see `FileStore`."""
        _check(digest)
        with self._store.read() as connection:
            data = connection.execute(
                select(BlobRow.data).where(BlobRow.digest == digest)
            ).scalar_one_or_none()
        if data is None:
            raise FileMissingError(f"file {digest} is not in the database")
        return _verified(digest, bytes(data))

    def remove(self, digest: str) -> bool:
        """Remove it; False: it was not there."""
        _check(digest)
        with self._store.write() as connection:
            return bool(connection.execute(delete(BlobRow).where(BlobRow.digest == digest)).rowcount)


def open_files(store: Store, place: str, default: Path) -> FileStore:
    """The file store that `GRADER_FILE_STORE` names: `database`, a folder, or "" for the default folder."""
    if place == IN_DATABASE:
        return DatabaseFiles(store)
    return FolderFiles(Path(place) if place else default)


def _within(data: bytes | Iterable[bytes], most: int) -> Iterable[bytes]:
    size = 0
    for part in (data,) if isinstance(data, bytes) else data:
        size += len(part)
        if size > most:
            raise FileTooLargeError(f"more than {most} bytes")
        yield part


def _write(handle: int, part: bytes) -> None:
    rest = memoryview(part)
    while rest:
        rest = rest[os.write(handle, rest) :]


def _check(digest: str) -> None:
    # Digests become parts of paths: nothing else may.
    if not _DIGEST.fullmatch(digest):
        raise ValueError("not a SHA-256 in lower-case hex")


def _verified(digest: str, data: bytes) -> bytes:
    if hashlib.sha256(data).hexdigest() != digest:
        raise FileDamagedError(f"file {digest} has changed since it was written")
    return data


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
