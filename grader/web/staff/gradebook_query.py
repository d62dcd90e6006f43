"""Which part of a gradebook an address asks for, in which order, and the addresses of its other parts and orders."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Depends

_MOST_TEXT = 200


@dataclass(frozen=True, slots=True)
class GradebookQuery:
    """What stands in an address; see `gradebook_page`.

    Attributes:
        order: "down" where the largest comes first, and else the other way round.
        q: part of a name or login, "" for everybody.
        anonymous: 1: the gradebook of the tasks that are graded anonymously.
    """

    sort: str = "name"
    order: str = "up"
    q: str = ""
    page: int = 1
    anonymous: int = 0

    @property
    def descending(self) -> bool:
        """Whether the largest comes first."""
        return self.order == "down"

    def link(self, at: str, **changes: str | int) -> str:
        """Address of the first page with these changes, below that of its course."""
        wanted = {**asdict(self), "page": 1, **changes}
        fields = {name: value for name, value in wanted.items() if value != _PLAIN[name]}
        return f"{at}/gradebook" + (f"?{urlencode(fields)}" if fields else "")

    def sorting(self, at: str, by: str, first: str = "down") -> tuple[str, str]:
        """Address that sorts by a column, or turns it round, and what `aria-sort` says of it now."""
        if by != self.sort:
            return self.link(at, sort=by, order=first), "none"
        if self.descending:
            return self.link(at, order="up"), "descending"
        return self.link(at, order="down"), "ascending"


_PLAIN = asdict(GradebookQuery())


def gradebook_query(
    sort: str = "name", order: str = "up", q: str = "", page: int = 1, anonymous: bool = False
) -> GradebookQuery:
    """What this address asks for."""
    return GradebookQuery(sort, order, q[:_MOST_TEXT], page, int(anonymous))


GradebookQueryDep = Annotated[GradebookQuery, Depends(gradebook_query)]
