"""Rank tests that no `if rank == 0` shows: in decorators, in what a loop goes over, in classes and roles asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from grader.checks.source.ranks.rank_sets import RankSet
from grader.checks.source.script import Script

PRELUDE = """
import contextlib
import enum
import functools
import os
import torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
local_rank = int(os.environ["LOCAL_RANK"])
"""

ROLES = "class Role(enum.Flag):\n    ANY = 0\n    MACHINE = enum.auto()\n    FIRST = enum.auto()\n"

MAIN_ONLY = [
    (
        "def on_rank(n):\n    def given(f):\n        @functools.wraps(f)\n        def g(*a):\n"
        "            return f(*a) if dist.get_rank() == n else None\n        return g\n    return given\n"
        "@on_rank(0)\ndef save():\n    here('a')\nsave()"
    ),
    (
        "def only_main(f):\n    return f if rank == 0 else (lambda *a: None)\n"
        "@only_main\ndef save():\n    here('a')\nsave()"
    ),
    "def once():\n    if rank == 0:\n        yield\nfor _ in once():\n    here('a')",
    "for _ in range(rank == 0):\n    here('a')",
    "once = range(int(rank == 0))\nfor _ in once:\n    here('a')",
    "for line in ['x'] * (rank == 0):\n    here('a')",
    "lines = ['x'] if rank == 0 else []\nfor line in lines:\n    here('a')",
    "lines = []\nif rank == 0:\n    lines = [1, 2]\nfor line in lines:\n    here('a')",
    "def say(lines):\n    for line in lines:\n        here('a')\nsay(['x'] if not rank else ())",
    (
        "class Null:\n    pass\nclass File:\n    pass\nclass Lines(File):\n    pass\n"
        "@contextlib.contextmanager\ndef opened(me):\n    writer = Lines() if me == 0 else Null()\n    yield writer\n"
        "with opened(rank) as writer:\n    if isinstance(writer, File):\n        here('a')"
    ),
    "class File:\n    pass\nout = File() if rank == 0 else None\nif isinstance(out, File):\n    here('a')",
    (
        "@contextlib.contextmanager\ndef first():\n    yield rank == 0\n"
        "with first() as mine:\n    if mine:\n        here('a')"
    ),
    "roles = set()\nif rank == 0:\n    roles.add('writer')\nif 'writer' in roles:\n    here('a')",
    "roles = ['x', 'writer'] if rank == 0 else ['x']\nif 'writer' in roles:\n    here('a')",
    f"{ROLES}role = Role.ANY\nif rank == 0:\n    role = role | Role.FIRST\nif role & Role.FIRST:\n    here('a')",
    (
        f"{ROLES}class World:\n    def __enter__(self):\n        self.role = Role.ANY\n"
        "        if local_rank == 0:\n            self.role |= Role.MACHINE\n"
        "        if dist.get_rank() == 0:\n            self.role |= Role.FIRST\n        return self\n"
        "    @contextlib.contextmanager\n    def having(self, role):\n        yield role in self.role\n"
        "with World() as world:\n    with world.having(Role.MACHINE) as mine:\n        pass\n"
        "    with world.having(Role.FIRST) as mine:\n        if mine:\n            here('a')"
    ),
]

EVERY_RANK = [
    "roles = {'writer'}\nif rank == 0:\n    roles.add('writer')\nif 'writer' in roles:\n    here('a')",
    "roles = wanted()\nif rank == 0:\n    roles.add('writer')\nif 'writer' in roles:\n    here('a')",
    f"{ROLES}role = Role.ANY\nif rank == 0:\n    role |= Role.FIRST\nif Role.MACHINE in role:\n    here('a')",
    "def all_of():\n    if rank == 0:\n        yield 1\n    yield 2\nfor _ in all_of():\n    here('a')",
    "def dealt():\n    for i in x:\n        if i % 2 == rank:\n            yield i\nfor _ in dealt():\n    here('a')",
    "for _ in range(rank):\n    here('a')",
    "for _ in range(rank == 0, 3):\n    here('a')",
    "lines = ['x'] if rank == 0 else []\nlines.append('y')\nfor line in lines:\n    here('a')",
    "lines = ['x'] if rank == 0 else ['y']\nfor line in lines:\n    here('a')",
    "for line in lines if rank == 0 else others:\n    here('a')",
    "class A:\n    pass\nclass B(A):\n    pass\nx = B() if rank == 0 else A()\nif isinstance(x, A):\n    here('a')",
    (
        "def told(f):\n    def g(*a):\n        if rank == 0:\n            print('x')\n"
        "        return f(*a)\n    return g\n"
        "@told\ndef save():\n    here('a')\nsave()"
    ),
]


@pytest.mark.parametrize("text", MAIN_ONLY)
def test_only_rank_zero_gets_there(script: Callable[..., Script], here: Any, text: str) -> None:
    found = script(PRELUDE + text)
    guard = found.guards.partial(here(found, "a"))
    assert guard is not None
    assert guard.condition.which is RankSet.MAIN
    assert guard.condition.sure
    assert not found.guards.on_every_rank(here(found, "a"))


@pytest.mark.parametrize("text", EVERY_RANK)
def test_every_rank_gets_there(script: Callable[..., Script], here: Any, text: str) -> None:
    found = script(PRELUDE + text)
    assert found.guards.partial(here(found, "a")) is None
    assert found.guards.on_every_rank(here(found, "a"))
