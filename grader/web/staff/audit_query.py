"""The filter of an audit as an address says it; what makes no sense there is no filter, never an error."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Annotated

from fastapi import Depends

from grader.store.audit_trail import AuditFilter


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """Which events; the texts are those of the address, "" for all. Days are those of the course's zone."""

    kind: str = ""
    person: str = ""
    since: str = ""
    until: str = ""

    def filter(self, zone: tzinfo) -> AuditFilter:
        """The same for the store; the last day is one of them."""
        since, until = _day(self.since), _day(self.until)
        return AuditFilter(
            kind=self.kind or None,
            person_id=_number(self.person),
            since=None if since is None else datetime.combine(since, time(), zone),
            until=None if until is None else datetime.combine(until + timedelta(days=1), time(), zone),
        )

    def fields(self) -> dict[str, str]:
        """What stands in an address."""
        return {name: getattr(self, name) for name in self.__slots__ if getattr(self, name)}


def audit_query(kind: str = "", person: str = "", since: str = "", until: str = "") -> AuditQuery:
    """The filter of this address."""
    return AuditQuery(
        kind=kind[:40],
        person=person if _number(person) is not None else "",
        since=since if _day(since) is not None else "",
        until=until if _day(until) is not None else "",
    )


AuditQueryDep = Annotated[AuditQuery, Depends(audit_query)]


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _day(text: str) -> date | None:
    try:
        found = date.fromisoformat(text)
    except ValueError:
        return None
    return found if 2000 <= found.year <= 2200 else None
