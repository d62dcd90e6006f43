"""INSERT … ON CONFLICT, which both databases have and SQLAlchemy spells once for each. Knows no table."""

from __future__ import annotations

from collections.abc import Sequence
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
    kind = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    statement = kind(table).values(**values)
    if not update:
        return statement.on_conflict_do_nothing(index_elements=list(keys))
    return statement.on_conflict_do_update(
        index_elements=list(keys), set_={name: statement.excluded[name] for name in update}
    )
