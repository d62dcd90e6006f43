"""What opens an account besides its password: sessions of browsers and tokens of programs, and ending all of them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, update

from grader.store.clock import database_now
from grader.store.tables import ApiTokenRow, PersonRow


def end_all(connection: Connection, people: Sequence[int]) -> None:
    """End every session and every token of these people: whoever has seen a password may have made a token with it."""
    connection.execute(
        update(PersonRow).where(PersonRow.id.in_(people)).values(session_epoch=PersonRow.session_epoch + 1)
    )
    connection.execute(
        update(ApiTokenRow)
        .where(ApiTokenRow.person_id.in_(people), ApiTokenRow.revoked_at.is_(None))
        .values(revoked_at=database_now())
    )
