"""INSERT … ON CONFLICT, which both databases have and SQLAlchemy spells once for each. Knows no table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, Insert
from sqlalchemy.dialects import postgresql, sqlite

from grader.store.tables import Base


def upsert(
    connection: Connection,
    table: type[Base],
    keys: Sequence[str],
    values: dict[str, Any],
    *,
    update: Sequence[str],
) -> Insert:
    """Insert a row, or, where one with the same `keys` stands, set its `update` columns to the new values."""
    return upsert_statement(connection.dialect.name, table, tuple(keys), tuple(update)).values(**values)


@cache
def upsert_statement(
    dialect: str, table: type[Base], keys: tuple[str, ...], update: tuple[str, ...]
) -> Insert:
    """The same without values, which are given when it is executed; made once."""
    statement = (sqlite.insert if dialect == "sqlite" else postgresql.insert)(table)
    return statement.on_conflict_do_update(
        index_elements=list(keys), set_={name: statement.excluded[name] for name in update}
    )
