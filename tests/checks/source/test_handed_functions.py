"""Functions that are handed to what calls them at once are called there, and are written as they were."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest

from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import ImpliedCall

HEAD = """\
import functools
import torch.distributed as dist
from concurrent.futures import ThreadPoolExecutor

def reduced(x, op=None):
    dist.all_reduce(x, op)
    return x

class Meter:
    def total(self, x):
        dist.all_reduce(x)

m = Meter()
"""


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a, b = map(reduced, (a, b))", ["reduced"]),
        ("a = list(map(functools.partial(reduced, op=MAX), a))", ["functools.partial(reduced, op=MAX)"]),
        ("part = functools.partial(reduced, op=MAX)\na = [*map(part, a)]", ["part"]),
        ("for x in map(m.total, a):\n    print(x)", ["m.total"]),
        ("a = functools.reduce(reduced, a)", ["reduced"]),
        ("best = max(a, key=reduced)", ["reduced"]),
        ("with ThreadPoolExecutor() as pool:\n    a = list(pool.map(reduced, a))", ["reduced"]),
        ("map(reduced, a)", []),
        ("later = map(reduced, a)", []),
        ("a = list(map(str, a))", []),
        ("a = frame.map(reduced)", []),
    ],
)
def test_where_they_are_called(script: Callable[..., Script], text: str, written: list[str]) -> None:
    found = script(HEAD + text)
    implied = [c for c in found.all_calls() if isinstance(c, ImpliedCall)]
    assert [ast.unparse(c) for c in implied] == written
    assert all(found.collectives.of(c) for c in implied)
    assert ast.unparse(found.trees[0].root) == ast.unparse(ast.parse(HEAD + text))
