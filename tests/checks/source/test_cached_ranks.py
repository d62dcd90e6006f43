"""Ranks that a helper keeps from a first call above the start of the group, and helpers that ask anew."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from grader.checks.source.ranks.cached_ranks import cached_ranks
from grader.checks.source.script import Script

CACHED = """\
import functools
import torch.distributed as dist

@functools.lru_cache(maxsize=None)
def get_rank():
    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0

def log(text):
    if get_rank() == 0:
        print(text)

"""
KEPT = """\
import torch.distributed as dist

held = None

def is_main():
    global held
    if held is None:
        held = not dist.is_initialized() or dist.get_rank() == 0
    return held

def log(text):
    if is_main():
        print(text)

"""
EARLY = "def main():\n    log('hello')\n    dist.init_process_group()\n    log('there')\n\nmain()\n"
LATE = "def main():\n    dist.init_process_group()\n    log('there')\n\nmain()\n"
PERHAPS = "def main(a):\n    if a:\n        log('hello')\n    dist.init_process_group()\n    log('there')\n\nmain(1)\n"
ONCE = "def main():\n    log('hello')\n    dist.init_process_group()\n\nmain()\n"


@pytest.mark.parametrize(("head", "lines"), [(CACHED, [13, 4, 6, 14]), (KEPT, [16, 8, 8, 17])])
def test_the_first_answer_is_kept(script: Callable[..., Script], head: str, lines: list[int]) -> None:
    made = script(head + EARLY)
    (found,) = cached_ranks(made)
    assert [made.location(node).line for node in found.nodes] == lines
    assert (found.fix is not None) is (head is CACHED)


@pytest.mark.parametrize("head", [CACHED, KEPT])
@pytest.mark.parametrize("text", [LATE, PERHAPS, ONCE])
def test_nobody_asks_too_early(script: Callable[..., Script], head: str, text: str) -> None:
    assert list(cached_ranks(script(head + text))) == []


def test_asked_anew_each_time(script: Callable[..., Script]) -> None:
    assert (
        list(cached_ranks(script(CACHED.replace("@functools.lru_cache(maxsize=None)\n", "") + EARLY))) == []
    )
