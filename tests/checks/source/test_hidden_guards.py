"""Rank tests that no `if` shows around a line: in decorators, in what a loop goes over, in a class that is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from grader.checks.source.rank_sets import RankSet
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
]

EVERY_RANK = [
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
