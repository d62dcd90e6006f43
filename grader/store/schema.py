"""Which version of the tables a database has, and moving it to another one. The steps are `migrations/versions`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, text

from grader.errors import UsageError
from grader.store.database import Store

_FOLDER = Path(__file__).parent / "migrations"
# Any number that nothing else in this database uses.
_MIGRATING = 0x67726165
# Before the first release six steps led to its tables; whoever went through all of them is at 0006.
_UNRELEASED = ("0001", "0002", "0003", "0004", "0005")


@dataclass(frozen=True, slots=True)
class SchemaStatus:
    """A database's version beside ours; `current` None: it is empty. `pending`: versions that are still to come."""

    current: str | None
    head: str
    pending: tuple[str, ...]

    @property
    def up_to_date(self) -> bool:
        """Whether nothing is pending."""
        return self.current == self.head

    @property
    def problem(self) -> str | None:
        """Why this grader cannot work with the database, and what to do about it; None: it can."""
        if self.up_to_date:
            return None
        if self.pending:
            return "the database is not of this version: run `grader db upgrade` first"
        if self.current in _UNRELEASED:
            return (
                f"the database is at version {self.current}, from before the first release, which this grader cannot "
                "upgrade: run `grader db upgrade` with a checkout that still has the migration v0006_time_zones.py, or "
                "begin with an empty database"
            )
        return (
            f"the database is at version {self.current}, which this grader does not know: use the grader that upgraded "
            "it, or restore a backup of this version"
        )


def revisions() -> tuple[str, ...]:
    """All versions, oldest first."""
    script = ScriptDirectory.from_config(_config())
    return tuple(reversed([one.revision for one in script.walk_revisions()]))


def status(store: Store) -> SchemaStatus:
    """Where a database stands."""
    with store.read() as connection:
        return _status(connection)


def upgrade(store: Store, revision: str = "head") -> None:
    """Bring a database to a version, all in one transaction; nothing happens where it is there already.

    Raises:
        UsageError: there is no such version, or the database is at one that this grader does not know.
    """
    _move(store, revision, up=True)


def downgrade(store: Store, revision: str) -> None:
    """Take a database back to an earlier version, or to nothing (`base`); what that version has no place for is lost.

    Raises:
        UsageError: there is no such version, or the database is at one that this grader does not know.
    """
    _move(store, revision, up=False)


def _move(store: Store, revision: str, *, up: bool) -> None:
    try:
        _move_within(store, revision, up=up)
    finally:
        # Connections are kept for reuse; none may stay that lets references dangle, or remembers how tables were.
        store.close()


def _move_within(store: Store, revision: str, *, up: bool) -> None:
    with store.write() as connection:
        if store.is_sqlite:
            # Rebuilding a table drops the old one, which must not take along what refers to it; alembic checks nothing
            # itself, so it is checked before anything is kept. SQLite ignores this within a transaction.
            connection.exec_driver_sql("COMMIT")
            connection.exec_driver_sql("PRAGMA foreign_keys=OFF")
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        else:
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_MIGRATING})"))
        found = _status(connection)
        if found.problem is not None and not found.pending:
            raise UsageError(found.problem)
        try:
            (command.upgrade if up else command.downgrade)(_config(connection), revision)
            if store.is_sqlite:
                broken = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
                assert broken is None, f"a migration left a row of {broken[0]} that refers to nothing"
        except CommandError as error:
            raise UsageError(f"the database was left as it was: {error}") from None


def _status(connection: Connection) -> SchemaStatus:
    current = MigrationContext.configure(connection).get_current_revision()
    known = revisions()
    behind = known[known.index(current) + 1 :] if current in known else known if current is None else ()
    return SchemaStatus(current, known[-1], behind)


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config
