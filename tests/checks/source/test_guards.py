"""On which ranks does a line run: the spellings of public scripts, and near-misses that say nothing about ranks."""

from __future__ import annotations

import ast
from collections.abc import Callable
from textwrap import indent
from typing import Any

import pytest

from grader.checks.source.ranks.rank_sets import RankSet
from grader.checks.source.script import Script

PRELUDE = """
import os
import sys
import torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
local_rank = int(os.environ["LOCAL_RANK"])
world_size = dist.get_world_size()
"""

MAIN_ONLY = [
    "if rank == 0:\n    here('a')",
    "if 0 == rank:\n    here('a')",
    "if not rank:\n    here('a')",
    "if local_rank in [-1, 0]:\n    here('a')",
    "if rank < 1:\n    here('a')",
    "if os.environ['RANK'] == '0':\n    here('a')",
    "if int(os.getenv('RANK', 0)) == 0:\n    here('a')",
    "if rank % 8 == 0:\n    here('a')",
    "if rank != 0:\n    pass\nelse:\n    here('a')",
    "is_main = rank == 0\nif is_main and verbose:\n    here('a')",
    "master = rank == 0 if dist.is_initialized() else True\nif master:\n    here('a')",
    "def is_main():\n    return dist.get_rank() == 0\nif is_main():\n    here('a')",
    (
        "def is_main():\n    if not dist.is_initialized():\n        return True\n    return dist.get_rank() == 0\n"
        "if is_main():\n    here('a')"
    ),
    "if not dist.is_initialized() or dist.get_rank() == 0:\n    here('a')",
    "def f():\n    if rank != 0:\n        return\n    here('a')\nf()",
    "for epoch in range(3):\n    if rank:\n        continue\n    here('a')",
    "if rank > 0:\n    sys.exit()\nhere('a')",
    "if not int(os.environ['RANK']):\n    here('a')",
    "if rank % 8:\n    pass\nelse:\n    here('a')",
    "here('a') if rank == 0 else None",
    "rank == 0 and here('a')",
    (
        "class T:\n    def __init__(self):\n        self.main = dist.get_rank() == 0\n    def f(self):\n"
        "        if self.main:\n            here('a')\nT().f()"
    ),
    (
        "class T:\n    @property\n    def main(self):\n        return rank == 0\n    def f(self):\n"
        "        if self.main:\n            here('a')\nT().f()"
    ),
    "if (first := rank == 0):\n    here('a')",
    (
        "class Me:\n    def __init__(self, n):\n        self.n = n\n    @property\n    def first(self):\n"
        "        return self.n == 0\n"
        "@contextlib.contextmanager\ndef joined():\n    yield Me(dist.get_rank())\n"
        "def run(me):\n    if me.first:\n        here('a')\n"
        "with joined() as me:\n    run(me)"
    ),
    "verbose = 1 if rank == 0 else 0\nif verbose:\n    here('a')",
    "level = 2 if rank == 0 else 0\nif level > 1:\n    here('a')",
    "role = 'master' if rank == 0 else 'worker'\nif role == 'master':\n    here('a')",
    "role = 'worker' if rank else 'master'\nif role != 'worker':\n    here('a')",
    "role = 'worker'\nif rank == 0:\n    role = 'master'\nif role in ('master', 'chief'):\n    here('a')",
    "role = 'b' if rank else 'a'\nmatch role:\n    case 'b':\n        pass\n    case _:\n        here('a')",
    "out = path if rank == 0 else None\nif out is not None:\n    here('a')",
    "out = os.path.join(folder, 'm.pt') if rank == 0 else None\nif out:\n    here('a')",
    "loud = False\nif rank == 0:\n    loud = True\nif loud:\n    here('a')",
    "def role():\n    if rank:\n        return 'worker'\n    return 'master'\nif role() == 'master':\n    here('a')",
    (
        "class Role(enum.Enum):\n    MASTER = enum.auto()\n    WORKER = enum.auto()\n"
        "role = Role.MASTER if rank == 0 else Role.WORKER\nif role is Role.MASTER:\n    here('a')"
    ),
]

EVERY_RANK = [
    "at = size * rank\nwhile left - (at - size * rank) > 0:\n    here('a')\n    at += size * world_size",
    "at = first = size * rank\nif at - first < 9:\n    here('a')",
    "at = size * rank + begin\nif at - size * rank < 9:\n    here('a')",
    "at = size * rank\nwhile at + size <= len(order):\n    here('a')\n    at = at + size * world_size",
    (
        "class Reader:\n    def __init__(self, size, number):\n        self.size, self.number = size, number\n"
        "        self.at = self.size * self.number\n    def more(self):\n"
        "        return 99 - (self.at - self.size * self.number) >= 8\n    def next(self):\n"
        "        self.at += self.size * world_size\nreader = Reader(4, rank)\n"
        "while reader.more():\n    here('a')\n    reader.next()"
    ),
    "gpu = torch.cuda.is_available()\nif gpu:\n    here('a')",
    "n = 1 if rank == 0 else 2\nif n:\n    here('a')",
    "n = 1 if debug else 2\nif n == 1:\n    here('a')",
    "found = [path if rank == 0 else None]\ndist.broadcast_object_list(found)\nif found[0]:\n    here('a')",
    "found = [path if rank == 0 else None]\nshare(found)\n(out,) = found\nif out is not None:\n    here('a')",
    "out = (path if rank == 0 else None) or default\nif out is not None:\n    here('a')",
    "here('a')",
    "if verbose:\n    here('a')",
    "if world_size > 1:\n    here('a')",
    "if local_rank != -1:\n    here('a')",
    "if rank >= 0:\n    here('a')",
    "if dist.is_initialized():\n    here('a')",
    "if 'RANK' in os.environ:\n    here('a')",
    "if os.environ.get('RANK'):\n    here('a')",
    "local = os.getenv('LOCAL_RANK')\nif local:\n    here('a')",
    "if os.environ.get('LOCAL_RANK', '') != '':\n    here('a')",
    "if not os.environ.get('SLURM_PROCID'):\n    sys.exit()\nhere('a')",
    "def is_main():\n    return rank == 0\nif is_main:\n    here('a')",
    "if rank == 0:\n    print('x')\nhere('a')",
    "for epoch in range(3):\n    if rank == 0:\n        break\nhere('a')",
]

_MEET = "store, me, n = next(dist.rendezvous('env://'))\n"
_JOIN = "dist.init_process_group('gloo', store=store, rank=me, world_size=n)\n"
HANDED_TO_THE_GROUP = [
    f"{_MEET}{_JOIN}if me == 0:\n    here('a')",
    f"{_MEET}store = dist.PrefixStore('mine', store)\n{_JOIN}if not me:\n    here('a')",
    f"{_MEET}options = dict(rank=me, world_size=n)\ndist.init_process_group(**options)\nif me == 0:\n    here('a')",
    (
        "def join():\n    store, me, n = next(dist.rendezvous('env://'))\n"
        "    dist.init_process_group('gloo', store=store, rank=me, world_size=n)\n    return me, n\n"
        "mine, all_of_us = join()\nif mine == 0:\n    here('a')"
    ),
    "who = ask()\ndist.init_process_group(rank=who[0], world_size=who[1])\nif who[0] == 0:\n    here('a')",
    "args = parse()\ndist.init_process_group(rank=args.me, world_size=args.n)\nif args.me == 0:\n    here('a')",
    (
        "@dataclass\nclass Member:\n    me: int\n    n: int\n    def join(self):\n"
        "        dist.init_process_group('gloo', rank=self.me, world_size=self.n)\n"
        "member = Member(*ask())\nmember.join()\nif member.me == 0:\n    here('a')"
    ),
]
OTHERS_OF_THE_GROUP = [
    f"{_MEET}{_JOIN}if store == 0:\n    here('a')",
    f"{_MEET}{_JOIN}if n > 1:\n    here('a')",
    "me = 0\ndist.init_process_group('gloo', rank=me, world_size=1)\nif me == 0:\n    here('a')",
    "who = ask()\ndist.init_process_group(rank=who[0], world_size=who[1])\nif who[2] == 0:\n    here('a')",
    "args = parse()\ndist.init_process_group(rank=args.me, world_size=args.n)\nif args.seed == 0:\n    here('a')",
]


def _script(script: Callable[..., Script], text: str) -> Script:
    return script(PRELUDE + text)


@pytest.mark.parametrize("text", HANDED_TO_THE_GROUP)
def test_what_the_group_is_given_as_rank_is_one(script: Callable[..., Script], here: Any, text: str) -> None:
    found = script(f"import torch.distributed as dist\n{text}")
    guard = found.guards.partial(here(found, "a"))
    assert guard is not None
    assert guard.condition.which is RankSet.MAIN


@pytest.mark.parametrize("text", OTHERS_OF_THE_GROUP)
def test_what_else_comes_with_a_rank_is_none(script: Callable[..., Script], here: Any, text: str) -> None:
    found = script(f"import torch.distributed as dist\n{text}")
    assert found.guards.partial(here(found, "a")) is None


@pytest.mark.parametrize("text", MAIN_ONLY)
def test_only_rank_zero_gets_there(script: Callable[..., Script], here: Any, text: str) -> None:
    found = _script(script, text)
    guard = found.guards.partial(here(found, "a"))
    assert guard is not None
    assert guard.condition.which is RankSet.MAIN
    assert guard.condition.sure
    assert not found.guards.on_every_rank(here(found, "a"))


@pytest.mark.parametrize("text", EVERY_RANK)
def test_every_rank_gets_there(script: Callable[..., Script], here: Any, text: str) -> None:
    found = _script(script, text)
    assert found.guards.partial(here(found, "a")) is None
    assert found.guards.on_every_rank(here(found, "a"))


@pytest.mark.parametrize(
    "text",
    [
        "def save():\n    here('a')\nif rank == 0:\n    save()",
        "def inner():\n    here('a')\ndef outer():\n    inner()\nif not rank:\n    outer()",
        (
            "def only_main(f):\n    def g(*a):\n        if rank == 0:\n            return f(*a)\n    return g\n"
            "@only_main\ndef save():\n    here('a')\nsave()"
        ),
        "from pytorch_lightning.utilities import rank_zero_only\n@rank_zero_only\ndef save():\n    here('a')\nsave()",
        "def never_called():\n    here('a')",
        "class Data:\n    def __getitem__(self, i):\n        here('a')",
    ],
)
def test_no_path_of_calls_leads_every_rank_there(script: Callable[..., Script], here: Any, text: str) -> None:
    found = _script(script, text)
    assert not found.guards.on_every_rank(here(found, "a"))


def test_one_unguarded_call_is_enough(script: Callable[..., Script], here: Any) -> None:
    found = _script(script, "def save():\n    here('a')\nif rank == 0:\n    save()\nsave()")
    assert found.guards.on_every_rank(here(found, "a"))


def test_a_fallback_for_one_process_is_recognised(script: Callable[..., Script], here: Any) -> None:
    text = "if world_size == 1:\n    here('a')\nelse:\n    here('b')\nif 'RANK' not in os.environ:\n    here('c')"
    found = _script(script, text)
    assert found.guards.alone(here(found, "a"))
    assert not found.guards.alone(here(found, "b"))
    assert found.guards.alone(here(found, "c"))


def test_spawned_functions_run_on_every_rank_and_their_parent_does_not(
    script: Callable[..., Script], here: Any
) -> None:
    text = """
    import torch.multiprocessing as mp
    def worker(gpu, size):
        here('a')
        if gpu == 0:
            here('b')
    if __name__ == '__main__':
        here('c')
        mp.spawn(worker, args=(2,), nprocs=2)
    """
    found = script(text)
    assert found.guards.on_every_rank(here(found, "a"))
    assert not found.guards.on_every_rank(here(found, "b"))
    assert not found.guards.on_every_rank(here(found, "c"))


def test_other_numbers_are_some_ranks(script: Callable[..., Script], here: Any) -> None:
    found = _script(script, "if rank == 3:\n    here('a')\nif rank == world_size - 1:\n    here('b')")
    for label in "ab":
        guard = found.guards.partial(here(found, label))
        assert guard is not None
        assert guard.condition.which is RankSet.SOME
        assert [guard.condition.keeps_off(other) for other in (0, 3)] == [label == "a", False]


@pytest.mark.parametrize(
    "text",
    [
        "at = size * rank\nif at - other * rank < 9:\n    here('a')",
        "at = size * rank\nif at - size < 9:\n    here('a')",
        "at = size * rank\nif at < 9:\n    here('a')",
        "at = size * rank\nat += rank\nif at - size * rank < 9:\n    here('a')",
        "if 9 - (rank - 1) > 8:\n    here('a')",
    ],
)
def test_what_is_left_of_the_rank_decides(script: Callable[..., Script], here: Any, text: str) -> None:
    found = _script(script, text)
    assert found.guards.partial(here(found, "a")) is not None


def test_guards_cross_files(script: Callable[..., Script], here: Any) -> None:
    train = "from comm import is_main\nif is_main():\n" + indent("here('a')", "    ")
    found = script(
        train, comm="import torch.distributed as dist\ndef is_main():\n    return not dist.get_rank()\n"
    )
    guard = found.guards.partial(here(found, "a"))
    assert guard is not None
    assert guard.condition.which is RankSet.MAIN


def test_a_registry_that_is_asked_for_a_name_says_nothing_of_ranks(script: Callable[..., Script]) -> None:
    """A dictionary of one's own, in a file beside: what it holds is unknown, and stands in no file."""
    registry = (
        "class Registry(dict):\n"
        "    def register(self, key, value):\n"
        "        if key in self:\n"
        "            raise KeyError(key)\n"
        "        self[key] = value\n"
    )
    read = script(
        "from helper import Registry\nmodels = Registry()\nmodels.register('a', 1)\n", helper=registry
    )
    (kept,) = (node for tree in read.trees for node in ast.walk(tree.root) if isinstance(node, ast.Raise))
    assert read.guards.partial(kept) is None
