"""Which calls of a collective are told one by one: the first of each line, then few, and those after an evaluation.

One line may average gradients and bring metrics together, in a function for both: what follows an evaluation, or the
beginning of a pass over data, is told however often the line has been called before.
"""

from __future__ import annotations

from grader.probe.hooks.code_locations import CodeLocation
from grader.probe.hooks.counters import counters

_FIRST = 64
_EVERY = 64
_AFTER = 8
"""Calls of a line that are told after each evaluation, or beginning of a pass."""
_MAX_AFTER = 4096


class _Line:
    """Calls of one name at one line so far, and of these since the last evaluation or pass began."""

    __slots__ = ("calls", "moment", "since")

    def __init__(self) -> None:
        self.calls = self.moment = self.since = 0


_lines: dict[tuple[str, CodeLocation | None], _Line] = {}
_num_after = 0


def number_if_told(name: str, site: CodeLocation | None) -> int:
    """How many calls of this name this line has made, where this one is to be told of; else 0."""
    global _num_after
    line = _lines.get((name, site))
    if line is None:
        line = _lines[name, site] = _Line()
    n = line.calls = line.calls + 1
    moment = counters.passes + counters.evaluations
    if line.moment != moment:
        line.moment, line.since = moment, 0
    line.since += 1
    if n <= _FIRST or not n % _EVERY:
        return n
    if line.since > _AFTER or _num_after >= _MAX_AFTER:
        return 0
    _num_after += 1
    return n
