"""The database's clock: the only clock that leases, limits and due dates are held against.

Hosts disagree about the time, and a host's clock may jump; what every worker shares is the database. Never reads the
host's own clock.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Float, literal, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from grader.store.tables.base import UtcTime


class database_now(FunctionElement[datetime]):  # noqa: N801 - reads as the SQL function that it is
    """Now by the database's clock, moved by some seconds: `database_now(30.0)`, `database_now(CourseRow.offset_s)`."""

    type = UtcTime()
    inherit_cache = True
    name = "database_now"

    def __init__(self, offset_s: Any = 0.0) -> None:
        super().__init__(literal(float(offset_s), Float()) if isinstance(offset_s, int | float) else offset_s)


@compiles(database_now, "postgresql")
def _postgresql(element: database_now, compiler: SQLCompiler, **kw: Any) -> str:
    # Of the statement, not of the transaction, which may have waited for a lock; and stable, so that indexes serve it.
    offset = compiler.process(element.clauses, **kw)
    return f"(statement_timestamp() + make_interval(secs => CAST({offset} AS double precision)))"


@compiles(database_now, "sqlite")
def _sqlite(element: database_now, compiler: SQLCompiler, **kw: Any) -> str:
    # In the very form in which SQLAlchemy writes times there, so that comparing texts compares times.
    offset = compiler.process(element.clauses, **kw)
    return f"(strftime('%Y-%m-%d %H:%M:%f', 'now', printf('%+.3f seconds', {offset})) || '000')"


def now(connection: Connection) -> datetime:
    """The database's time, UTC."""
    return connection.execute(select(database_now())).scalar_one()
