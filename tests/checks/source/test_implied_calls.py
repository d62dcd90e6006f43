"""Special methods in which ranks may meet are calls wherever Python runs them, and are written as they were."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest

from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import ImpliedCall

HEAD = """\
import torch.distributed as dist

class Meter:
    def total(self):
        dist.all_reduce(self.sum)
        return self.sum

    def __str__(self):
        return str(self.total())

    def __len__(self):
        return self.total()

    def __lt__(self, other):
        return self.total() < other

    def __repr__(self):
        return "Meter"

class Quiet:
    def __str__(self):
        return format(self.sum)

m, q = Meter(), Quiet()
"""


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("print(1, m)", ["m"]),
        ("f'{m} {m!r} {q}'", ["m"]),
        ("'{} {}'.format(q, m)", ["m"]),
        ("'%s %s' % (m, q)", ["m"]),
        ("log.info('%s', m)", ["m"]),
        ("x = 1 if m else 2", ["m"]),
        ("while not m: pass", ["m"]),
        ("len(m) + len([m])", ["m"]),
        ("1 > m", ["m"]),
        ("d = {'a': Meter()}\nfor k, v in d.items():\n    print(k, v, d['a'])", ["v", "d['a']"]),
        ("[str(x) for x in (Meter(), Meter())]", ["x"]),
        ("for x in (Meter(), Quiet()):\n    print(x)", []),
        ("def f(x):\n    print(x)\nf(m)\nf(1)", []),
        ("print(repr(m), m.total(), m is q)", []),
    ],
)
def test_where_python_runs_them(script: Callable[..., Script], text: str, written: list[str]) -> None:
    found = script(HEAD + text)
    implied = [c for c in found.all_calls() if isinstance(c, ImpliedCall)]
    assert [ast.unparse(c) for c in implied] == written
    assert all(found.collectives.of(c) for c in implied)
    assert ast.unparse(found.trees[0].root) == ast.unparse(ast.parse(HEAD + text))
