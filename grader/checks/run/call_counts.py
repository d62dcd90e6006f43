"""How often ranks called collectives: of many calls of one line only some are told one by one, and all are counted."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from grader.checks.phrases import count
from grader.model.call_site import Site
from grader.model.trace import Collective, RankTrace, Trace


@dataclass(frozen=True, slots=True)
class CallCount:
    """Calls of one collective at one line by one rank; `exact` is False where there may have been more."""

    number: int
    exact: bool

    @property
    def told(self) -> str:
        """In words, such as “100 times”."""
        times = count(self.number, "time")
        return times if self.exact else f"at least {times}"


def calls_of(rank: RankTrace, call: Collective) -> CallCount:
    """How often a rank called what this is one call of, over the whole run."""
    counted = sum(one.calls for one in rank.traffic if (one.name, one.site) == (call.name, call.site))
    told = max(c.n for c in (*rank.collectives, call) if (c.name, c.site) == (call.name, call.site))
    return CallCount(max(counted, told), counted >= told)


def num_calls(trace: Trace, leave_out: Container[str] = ()) -> int:
    """Calls of all ranks together, but for some names; at least so many where a rank did not come to its end."""
    return sum(_num_calls(rank, leave_out) for rank in trace.ranks)


def _num_calls(rank: RankTrace, leave_out: Container[str]) -> int:
    counted = sum(one.calls for one in rank.traffic if one.name not in leave_out)
    told: dict[tuple[str, Site | None], int] = {}
    for call in rank.collectives:
        if call.name not in leave_out:
            told[call.name, call.site] = max(call.n, told.get((call.name, call.site), 0))
    return max(counted, sum(told.values()))
