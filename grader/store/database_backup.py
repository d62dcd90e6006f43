"""Backup and restore of a whole database: one file out, one file in, all or nothing.

SQLite is copied by its own backup interface while everybody works on; PostgreSQL by its own programs. Files that lie in
a folder are not part of it: `site_backup` puts both together.
"""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from sqlalchemy import URL, inspect

from grader.errors import InfraError, UsageError
from grader.store.database import BUSY_S, Store

_VERSION_TABLE = "alembic_version"
_INSTALLED = "/usr/lib/postgresql"
_PASSWORD_CHARS = {":": r"\:", "\\": r"\\"}


def backup(store: Store, target: Path) -> int:
    """Write the whole database into a new file and return its size in bytes; work goes on meanwhile.

    Raises:
        UsageError: the file is there already, or cannot be written.
        InfraError: the database's programs are missing or fail.
    """
    if target.exists():
        raise UsageError(f"{target} is there already; a backup never overwrites one")
    try:
        # Under its name only once it is whole; readable by nobody else, since it holds password hashes.
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".backup-") as folder:
            made = Path(folder) / "database"
            (_backup_sqlite if store.is_sqlite else _backup_postgresql)(store, made)
            made.chmod(0o600)
            made.rename(target)
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror}") from None
    return target.stat().st_size


def restore(store: Store, source: Path, *, replace: bool = False) -> None:
    """Put a backup into an empty database, or (`replace`) in the place of all that is there.

    The database gets the backup's version; `schema.upgrade` brings it to ours. Web and workers are to be stopped first.

    Raises:
        UsageError: there is no such file, it is no backup of ours, or the database is not empty.
        InfraError: the database's programs are missing or fail; the database is as it was.
    """
    if not source.is_file():
        raise UsageError(f"{source} is no file")
    tables = check_empty(store, replace=replace)
    (_restore_sqlite if store.is_sqlite else _restore_postgresql)(store, source, tables)
    store.close()


def check_empty(store: Store, *, replace: bool) -> list[str]:
    """The database's tables, which a restore would replace.

    Raises:
        UsageError: there are some, and they are not to be replaced.
    """
    with store.read() as connection:
        tables = inspect(connection).get_table_names()
    if set(tables) - {_VERSION_TABLE} and not replace:
        raise UsageError(
            "the database is not empty; --replace puts the backup in the place of all that is there"
        )
    return tables


def _backup_sqlite(store: Store, target: Path) -> None:
    with (
        closing(sqlite3.connect(str(store.url.database), timeout=BUSY_S)) as live,
        closing(sqlite3.connect(target)) as copy,
    ):
        # In one step: page by page it would begin anew whenever somebody writes.
        live.backup(copy, pages=-1)
        # One file, not three: whoever copies it need not know of WAL.
        copy.execute("PRAGMA journal_mode=DELETE")


def _restore_sqlite(store: Store, source: Path, _tables: Sequence[str]) -> None:
    store.close()
    try:
        with closing(sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True)) as copy:
            names = {name for (name,) in copy.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            (state,) = copy.execute("PRAGMA integrity_check(1)").fetchone()
            if _VERSION_TABLE not in names or state != "ok":
                raise UsageError(f"{source} is no whole backup of a grader's database")
            with closing(sqlite3.connect(str(store.url.database), timeout=BUSY_S)) as live:
                copy.backup(live)
    except sqlite3.OperationalError as error:
        raise InfraError(f"the database is as it was: {error}") from error
    except sqlite3.DatabaseError:
        raise UsageError(f"{source} is no backup of an SQLite database") from None


def _backup_postgresql(store: Store, target: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="grader-db-") as folder:
        address = _address(store.url, Path(folder))
        _run([_program("pg_dump"), "--format=custom", "--no-owner", f"--file={target}", address])


def _restore_postgresql(store: Store, source: Path, tables: Sequence[str]) -> None:
    pg_restore, psql = _program("pg_restore"), _program("psql")
    try:
        listed = _run([pg_restore, "--list", str(source)])
    except InfraError:
        raise UsageError(f"{source} is no backup of a PostgreSQL database") from None
    if f" {_VERSION_TABLE} " not in listed:
        raise UsageError(f"{source} is no whole backup of a grader's database")
    with tempfile.TemporaryDirectory(prefix="grader-db-") as folder:
        # As one script in one transaction: whatever goes wrong, the database stays as it was.
        script, whole = Path(folder) / "restore.sql", Path(folder) / "whole.sql"
        _run([pg_restore, "--no-owner", "--no-privileges", f"--file={script}", str(source)])
        with whole.open("wb") as out, script.open("rb") as dumped:
            for table in tables:
                out.write(f'DROP TABLE IF EXISTS public."{table}" CASCADE;\n'.encode())
            shutil.copyfileobj(dumped, out)
        options = ["--no-psqlrc", "--quiet", "--single-transaction", "--set=ON_ERROR_STOP=1"]
        _run([psql, *options, f"--file={whole}", f"--dbname={_address(store.url, Path(folder))}"])


def _address(url: URL, folder: Path) -> str:
    """The database's address as its own programs read it; its password stands in a file, not in the process list."""
    plain = url.set(drivername="postgresql", password=None)
    if url.password:
        file = folder / "pass"
        escaped = "".join(_PASSWORD_CHARS.get(letter, letter) for letter in str(url.password))
        file.touch(mode=0o600)
        file.write_text(f"*:*:*:*:{escaped}\n")
        plain = plain.update_query_dict({"passfile": str(file)})
    return plain.render_as_string(hide_password=False)


def _program(name: str) -> str:
    """Path of one of PostgreSQL's programs, of the newest version that is installed."""
    installed = sorted(Path(_INSTALLED).glob(f"*/bin/{name}"), key=lambda path: float(path.parts[-3]))
    found = str(installed[-1]) if installed else shutil.which(name)
    if found is None:
        raise InfraError(
            f"{name} is not installed here; `apt-get install postgresql-client` brings it, of a version not older "
            "than the server's"
        )
    return found


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise InfraError(f"{Path(command[0]).name} failed: {said[0]}")
    return done.stdout
