"""A whole site in one file: the database, and what attempts left wherever files lie.

A tar archive that any tool lists: `database` as `database_backup` writes it, and `files/DIGEST`. The database is taken
first, so that every file it knows of is there to be taken afterwards; whatever comes meanwhile is in the next backup.
"""

from __future__ import annotations

import io
import os
import tarfile
import tempfile
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import select

from grader.errors import InfraError, UsageError
from grader.store import database_backup
from grader.store.database import Store
from grader.store.files import DatabaseFiles, FileDamagedError, FileMissingError, FileStore
from grader.store.tables import ArtifactRow, TaskVersionRow

_DATABASE, _FILES = "database", "files/"


@dataclass(frozen=True, slots=True)
class BackupContents:
    """What a backup holds or brought back.

    Attributes:
        size: of the archive, in bytes; num_files: files beside the database.
        lost: digests of files that the database knows and the file store has not, or has damaged.
    """

    size: int
    num_files: int
    lost: tuple[str, ...] = ()


def back_up_site(store: Store, files: FileStore, target: Path) -> BackupContents:
    """Write database and files into one new file; work goes on meanwhile.

    Raises:
        UsageError: the file is there already, or cannot be written.
        InfraError: the database's programs are missing or fail, or the file store cannot be read.
    """
    if target.exists():
        raise UsageError(f"{target} is there already; a backup never overwrites one")
    lost: list[str] = []
    num_files = 0
    try:
        # Under its name only once it is whole; readable by nobody else, since it holds password hashes.
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".backup-") as folder:
            dumped, made = Path(folder) / _DATABASE, Path(folder) / "archive"
            database_backup.backup(store, dumped)
            made.touch(mode=0o600)
            with tarfile.open(made, "w") as archive:
                archive.add(dumped, _DATABASE)
                dumped.unlink()
                for digest in _known(store, files):
                    try:
                        _add(archive, _FILES + digest, files.get(digest))
                        num_files += 1
                    except (FileMissingError, FileDamagedError):
                        lost.append(digest)
            made.rename(target)
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror}") from None
    return BackupContents(target.stat().st_size, num_files, tuple(lost))


def restore_site(store: Store, files: FileStore, source: Path, *, replace: bool = False) -> BackupContents:
    """Put a backup into an empty site, or (`replace`) in the place of all that the database holds.

    Files come first: without a database that knows them they do no harm, and the other way round reports would be
    missing. A backup of the database alone is taken, too.

    Raises:
        UsageError: there is no such file, it is no backup of ours, or the database is not empty.
        InfraError: the database's programs are missing or fail; the database is as it was.
    """
    if not source.is_file():
        raise UsageError(f"{source} is no file")
    if not tarfile.is_tarfile(source):
        database_backup.restore(store, source, replace=replace)
        return BackupContents(source.stat().st_size, 0)
    beside = source.parent if os.access(source.parent, os.W_OK) else None
    num_files = 0
    try:
        with (
            tarfile.open(source) as archive,
            tempfile.TemporaryDirectory(dir=beside, prefix=".restore-") as folder,
        ):
            dumped = Path(folder) / _DATABASE
            names = archive.getnames()
            if _DATABASE not in names:
                raise UsageError(f"{source} is no backup of a grader's site")
            dumped.touch(mode=0o600)
            with dumped.open("wb") as out:
                for part in _parts(archive, _DATABASE):
                    out.write(part)
            database_backup.check_empty(store, replace=replace)
            for name in names:
                if name.startswith(_FILES):
                    if files.put(b"".join(_parts(archive, name))) != name.removeprefix(_FILES):
                        raise UsageError(f"{source} is damaged: {name} is not what was written")
                    num_files += 1
            database_backup.restore(store, dumped, replace=replace)
    except tarfile.TarError as error:
        raise UsageError(f"{source} is damaged: {error}") from None
    except OSError as error:
        raise InfraError(f"{source} cannot be unpacked: {error.strerror}") from error
    return BackupContents(source.stat().st_size, num_files)


def _known(store: Store, files: FileStore) -> list[str]:
    """Digests of what attempts left and of kept tasks, where these lie beside the database."""
    if isinstance(files, DatabaseFiles):
        return []
    with store.read() as connection:
        return list(
            connection.execute(
                select(ArtifactRow.digest).union(select(TaskVersionRow.digest)).order_by("digest")
            ).scalars()
        )


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), 0o600
    archive.addfile(info, io.BytesIO(data))


def _parts(archive: tarfile.TarFile, name: str) -> Generator[bytes]:
    # Only plain files are read, and none is ever unpacked to a place that the archive names.
    info = archive.getmember(name)
    member = archive.extractfile(info) if info.isreg() else None
    if member is None:
        raise tarfile.ReadError(f"{name} is no file")
    with member:
        while part := member.read(1 << 20):
            yield part
