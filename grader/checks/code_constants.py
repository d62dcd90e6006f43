"""Constants of plug-ins that name rules: `EXPLAINED_BY` of a rule, `TOLD_BY` of a diagnosis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from grader.catalog.rule_codes import known_codes
from grader.plugins.loader import Plugin
from grader.plugins.problems import PluginProblem
from grader.plugins.shape import Complaint, unknown


def code_tuple(value: Any) -> Iterator[Complaint]:
    """What is wrong with the value of such a constant."""
    if not isinstance(value, tuple) or not all(isinstance(code, str) for code in value):
        yield Complaint(f'is {value!r:.60}; it must be a tuple of codes such as ("DIST001",)')


def unknown_codes(plugins: Sequence[Plugin], constant: str) -> Iterator[PluginProblem]:
    """Codes in it that no rule has."""
    known = known_codes()
    for plugin in plugins:
        codes = plugin.get(constant, ())
        for code in codes if isinstance(codes, tuple) else ():
            if isinstance(code, str) and code not in known:
                yield plugin.problem(constant, unknown(code, known, "rule"))
