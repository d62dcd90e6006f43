"""The calls of one file, found by place and by name without going through all of them.

Names are those that are written: `step` for `optimizer.step()`, whatever the optimizer is. What a name stands for is
`libraries.names`' to say.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Callable, Iterable
from operator import attrgetter

from grader.checks.source.syntax.nodes import end, name_of, start

_start = attrgetter("lineno", "col_offset")


class CallIndex:
    """Calls by place and by name; `calls` are all of them, in the order of the text."""

    def __init__(self, calls: list[ast.Call]) -> None:
        self.calls = sorted(calls, key=_start)
        self._places = [_start(c) for c in self.calls]
        self._ends = [end(c) for c in self.calls]
        self._numbers = {call: number for number, call in enumerate(self.calls)}
        self._named: dict[str, list[ast.Call]] = {}
        for call in self.calls:
            self._named.setdefault(name_of(call), []).append(call)
        self._given: dict[str, list[ast.Call]] = {}
        for call in self.calls:
            for keyword in call.keywords:
                if keyword.arg is not None:
                    self._given.setdefault(keyword.arg, []).append(call)

    def within(self, node: ast.AST) -> list[ast.Call]:
        """Calls written inside a node (itself included), in the order of the text."""
        if isinstance(node, ast.Module):
            return self.calls
        last = end(node)
        here = slice(bisect_left(self._places, start(node)), bisect_left(self._places, last))
        return [c for c, until in zip(self.calls[here], self._ends[here], strict=True) if until <= last]

    def called(self, *names: str) -> list[ast.Call]:
        """Calls by the last part of what is called, as it is written, in the order of the text."""
        return self._in_order(self._named.get(name, []) for name in names)

    def called_like(self, test: Callable[[str], object]) -> list[ast.Call]:
        """The same for all names that pass a test, which is asked once per name."""
        return self._in_order(calls for name, calls in self._named.items() if test(name))

    def given(self, *keywords: str) -> list[ast.Call]:
        """Calls that are given one of these arguments by its keyword, in the order of the text."""
        return self._in_order(self._given.get(keyword, []) for keyword in keywords)

    def _in_order(self, groups: Iterable[list[ast.Call]]) -> list[ast.Call]:
        found = {call for calls in groups for call in calls}
        return sorted(found, key=self._numbers.__getitem__)
