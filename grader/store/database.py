"""The way to the database: one engine per process, transactions that behave alike on SQLite and PostgreSQL.

Writers of SQLite take turns from the start of their transaction on, so that none finds out at its end that it was
overtaken; those of one process wait for each other on a lock of ours, which is fairer than polling the file's. Knows no
table.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from grader.errors import InfraError, UsageError

BUSY_S = 10.0
"""How long a transaction waits for others before it gives up."""
_POOL, _OVERFLOW = 10, 10
_WRITES = "grader_writes"
_ASK_AGAIN_S = 0.02


class StoreUnavailableError(InfraError):
    """The database cannot be reached or is locked; nothing of the transaction happened, it may be tried again."""


def parse_url(text: str) -> URL:
    """The address of a database.

    Raises:
        UsageError: it is none, or one of a database that is not supported.
    """
    try:
        url = make_url(text)
    except ArgumentError:
        raise UsageError(
            "GRADER_DATABASE_URL is no address; write sqlite:///FILE or postgresql://…"
        ) from None
    kind = url.get_backend_name()
    if kind in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if kind != "sqlite":
        raise UsageError(f"GRADER_DATABASE_URL names {kind}; SQLite and PostgreSQL are supported")
    if url.database in (None, "", ":memory:"):
        raise UsageError("GRADER_DATABASE_URL names no file: several processes could not share that database")
    return url


class Store:
    """A database, open: `with store.write() as connection:` is one transaction.

    Attributes:
        url: its address; engine: SQLAlchemy's.
    """

    def __init__(self, url: str | URL) -> None:
        self.url = parse_url(url) if isinstance(url, str) else url
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self._turn = threading.Lock() if self.is_sqlite else None
        self.engine = _sqlite_engine(self.url) if self.is_sqlite else _postgresql_engine(self.url)

    @contextmanager
    def write(self) -> Generator[Connection]:
        """A transaction that may change things: committed at the end of the block, undone by an exception.

        Raises:
            StoreUnavailableError: the database is away or was locked for longer than `BUSY_S`.
        """
        with self._in_turn(), _availability(), self.engine.connect() as connection:
            writing = connection.execution_options(**{_WRITES: True})
            with writing.begin():
                yield writing

    @contextmanager
    def read(self) -> Generator[Connection]:
        """A transaction that only reads: it waits for no writer and sees one state of the database throughout.

        Raises:
            StoreUnavailableError: the database is away.
        """
        with _availability(), self.engine.connect() as connection:
            reading = (
                connection
                if self.is_sqlite
                else connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            )
            with reading.begin():
                yield reading

    @contextmanager
    def _in_turn(self) -> Generator[None]:
        if self._turn is None:
            yield
            return
        # Whoever stands behind one that waits for the file's lock does not wait for that long again.
        if not self._turn.acquire(timeout=BUSY_S):
            raise StoreUnavailableError("the database does not answer: others have been writing for too long")
        try:
            yield
        finally:
            self._turn.release()

    def close(self) -> None:
        """Close all connections; the next transaction opens new ones."""
        self.engine.dispose()


@contextmanager
def _availability() -> Generator[None]:
    try:
        yield
    except (OperationalError, InterfaceError, PoolTimeout) as error:
        raise StoreUnavailableError(f"the database does not answer: {_reason(error)}") from error
    except DBAPIError as error:
        if not error.connection_invalidated:
            raise
        raise StoreUnavailableError(f"the database went away: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    # The driver's own words; SQLAlchemy's would repeat the statement with everything a learner handed in.
    inner = error.orig if isinstance(error, DBAPIError) else error
    return (str(inner).strip().splitlines() or [type(inner).__name__])[0]


def _postgresql_engine(url: URL) -> Engine:
    milliseconds = int(BUSY_S * 1000)
    return create_engine(
        url,
        pool_size=_POOL,
        max_overflow=_OVERFLOW,
        pool_timeout=BUSY_S,
        pool_pre_ping=True,
        # A connection through a dead switch would otherwise be waited for as long as TCP likes.
        connect_args={
            "connect_timeout": 5,
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "options": f"-c lock_timeout={milliseconds} -c idle_in_transaction_session_timeout=60000 -c timezone=UTC",
        },
    )


def _write_ahead(cursor: sqlite3.Cursor) -> None:
    """Choose the journal that lets readers read while somebody writes.

    While others do the same for a new file, SQLite refuses at once, whatever the connection's timeout.
    """
    pause = threading.Event()
    for _ in range(int(BUSY_S / _ASK_AGAIN_S)):
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError:
            pause.wait(_ASK_AGAIN_S)
    cursor.execute("PRAGMA journal_mode=WAL")


def _sqlite_engine(url: URL) -> Engine:
    Path(str(url.database)).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(
        url,
        pool_size=_POOL,
        max_overflow=_OVERFLOW,
        pool_timeout=BUSY_S,
        # Transactions are begun by us, below: the driver would begin them late, after the first read.
        connect_args={"timeout": BUSY_S, "check_same_thread": False, "isolation_level": None},
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA foreign_keys=ON")
        _write_ahead(cursor)
        # A receipt that was given outlives a power cut.
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.execute("PRAGMA cache_size=-16384")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get(_WRITES, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine
