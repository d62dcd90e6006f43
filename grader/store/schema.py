"""Which version of the tables a database has, and moving it to another one. The steps are `migrations/versions`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, text

from grader.errors import UsageError
from grader.store.database import Store
from grader.store.tables import Base

_FOLDER = Path(__file__).parent / "migrations"
# Any number that nothing else in this database uses.
_MIGRATING = 0x67726165


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


def head() -> str:
    """The newest version."""
    revision = ScriptDirectory.from_config(_config()).get_current_head()
    assert revision is not None, "there is at least one migration"
    return revision


def revisions() -> tuple[str, ...]:
    """All versions, oldest first."""
    script = ScriptDirectory.from_config(_config())
    return tuple(reversed([one.revision for one in script.walk_revisions()]))


def status(store: Store) -> SchemaStatus:
    """Where a database stands."""
    with store.read() as connection:
        current = MigrationContext.configure(connection).get_current_revision()
    known = revisions()
    behind = known[known.index(current) + 1 :] if current in known else known if current is None else ()
    return SchemaStatus(current, known[-1], behind)


def upgrade(store: Store, revision: str = "head") -> None:
    """Bring a database to a version, all in one transaction; nothing happens where it is there already.

    Raises:
        UsageError: there is no such version, or the database is of a newer grader.
    """
    _move(store, revision, up=True)


def downgrade(store: Store, revision: str) -> None:
    """Take a database back to an earlier version, or to nothing (`base`); what that version has no place for is lost.

    Raises:
        UsageError: there is no such version.
    """
    _move(store, revision, up=False)


def differences(store: Store) -> list[object]:
    """What the database's tables differ in from ours, as Alembic's autogenerate sees it; empty when all is well."""
    with store.read() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        return list(compare_metadata(context, Base.metadata))


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
        try:
            (command.upgrade if up else command.downgrade)(_config(connection), revision)
            if store.is_sqlite:
                broken = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
                assert broken is None, f"a migration left a row of {broken[0]} that refers to nothing"
        except CommandError as error:
            raise UsageError(f"the database was left as it was: {error}") from None


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config
