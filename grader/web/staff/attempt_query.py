"""The filter of a list of attempts as an address says it; what makes no sense there is no filter, never an error."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, TypeVar

from fastapi import Depends

from grader.model.grade import Verdict
from grader.store.attempts.attempts import AttemptFilter
from grader.store.courses.learners import Learners
from grader.store.tables.attempt import AttemptState, Lane

_Kind = TypeVar("_Kind", bound=StrEnum)
_CODE = re.compile(r"[A-Z]{2,12}[0-9]{1,4}")


@dataclass(frozen=True, slots=True)
class AttemptQuery:
    """Which attempts; the texts are those of the address, "" for all."""

    task: str = ""
    person: str = ""
    state: str = ""
    verdict: str = ""
    code: str = ""
    lane: str = ""

    def filter(self, course_id: int, learners: Learners | None) -> AttemptFilter:
        """The same for the store, held to one course and to these learners of it; None: everybody."""
        return AttemptFilter(
            course_id=course_id,
            course_task_id=_number(self.task),
            person_id=_number(self.person),
            state=_member(AttemptState, self.state),
            lane=_member(Lane, self.lane),
            verdict=_member(Verdict, self.verdict),
            learners=learners,
            code=self.code if _CODE.fullmatch(self.code) else None,
        )

    def fields(self) -> dict[str, str]:
        """What stands in an address or in hidden fields."""
        return {name: getattr(self, name) for name in self.__slots__ if getattr(self, name)}


def attempt_query(
    task: str = "", person: str = "", state: str = "", verdict: str = "", code: str = "", lane: str = ""
) -> AttemptQuery:
    """The filter of this address."""
    return AttemptQuery(
        task=task if _number(task) is not None else "",
        person=person if _number(person) is not None else "",
        state=state if _member(AttemptState, state) else "",
        verdict=verdict if _member(Verdict, verdict) else "",
        code=code.strip().upper()[:20],
        lane=lane if _member(Lane, lane) else "",
    )


AttemptQueryDep = Annotated[AttemptQuery, Depends(attempt_query)]


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _member(kind: type[_Kind], text: str) -> _Kind | None:
    try:
        return kind(text)
    except ValueError:
        return None
