"""The rows of all tables that are about one person, as plain values: for the copy that they may take away.

Found by how tables refer to people, so that a new table's rows are in it without anybody thinking of it. Secrets, and
whoever else a row names, are left out. What a learner may not see yet is not decided here: attempts and grades are told
elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from enum import Enum
from typing import Any

from sqlalchemy import Column, Table, select

from grader.store.database import Store
from grader.store.tables import Base, EnrolmentRow

TOLD_ELSEWHERE = frozenset(
    {"attempts", "grade_codes", "late_day_uses", "lti_scores", "standings", "submissions", "turns"}
)
"""Tables about a person whose content depends on what they may see yet, or follows from other tables."""
_OWNER, _ENROLMENT = "person_id", "enrolment_id"
_SECRET = re.compile(r"hash|sealed|secret|password|token|nonce|_key$|prefix")


def personal_records(store: Store, person_id: int) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Each table's name with the person's rows in it, in the order of their keys; tables without any are left out."""
    enrolments = select(EnrolmentRow.id).where(EnrolmentRow.person_id == person_id)
    for table in personal_tables():
        if table.name == "people":
            mine = table.c.id == person_id
        elif _OWNER in table.c:
            mine = table.c[_OWNER] == person_id
        else:
            mine = table.c[_ENROLMENT].in_(enrolments)
        columns = [column for column in table.c if _may_be_told(column)]
        with store.read() as connection:
            rows = connection.execute(select(*columns).where(mine).order_by(*table.primary_key.columns))
            found = [{name: _plain(value) for name, value in row.items()} for row in rows.mappings()]
        if found:
            yield table.name, found


def personal_tables() -> list[Table]:
    """The tables whose rows are about one person: their account, and what refers to it or to an enrolment of theirs."""
    return [
        table
        for table in Base.metadata.sorted_tables
        if table.name not in TOLD_ELSEWHERE
        and (table.name == "people" or _OWNER in table.c or _ENROLMENT in table.c)
    ]


def _may_be_told(column: Column[Any]) -> bool:
    if _SECRET.search(column.name):
        return False
    others = column.name != _OWNER and any(key.column.table.name == "people" for key in column.foreign_keys)
    return not others


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    if isinstance(value, Enum):
        return value.value
    return None if isinstance(value, bytes) else value
