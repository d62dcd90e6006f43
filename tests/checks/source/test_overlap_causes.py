"""Lines that let ranks take the same samples, and near ones that do not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from grader.checks.source.data.orders_by_hand import divided
from grader.checks.source.data.overlap_causes import overlap_cause
from grader.checks.source.script import Script

HEAD = """\
import numpy as np
import torch
import torch.distributed as dist
from torch.utils.data import get_worker_info

dist.init_process_group()
rank, world = dist.get_rank(), dist.get_world_size()
info = get_worker_info()
draws = torch.Generator().manual_seed(1)
other = torch.Generator().manual_seed(2)
rng = np.random.default_rng(1)
"""
READER = """\
class Reader:
    def __init__(self, order, size, number, ranks):
        self.order, self.size, self.number, self.ranks = order, size, number, ranks
        self.again()
    def again(self):
        self.at = self.size * self.number
    def next(self):
        mine = self.order[self.at:self.at + self.size]
        print(mine)
        use(self.at)
        self.at += {step}
        return mine
reader = Reader(order, 64 // world, rank, world)
"""


def cause(script: Callable[..., Script], text: str, first_epoch: int = 0) -> tuple[int, str] | None:
    found = overlap_cause(script(HEAD + text), first_epoch)
    return None if found is None else (found.nodes[0].lineno, found.hint)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "line", "hint"),
    [
        (
            "order = torch.randperm(9, generator=draws)\nif rank == 0:\n    torch.randint(9, (2,), generator=draws)\n",
            14,
            "leave `generator=draws` out of",
        ),
        (
            "order = rng.permutation(9)\nif rank == 0:\n    print(rng.choice(9))\n",
            14,
            "of its own at `train.py:14`",
        ),
        (
            "number = rank + (info.id if info else 0)\nmine = order[number::4]\n",
            12,
            "Write `rank * num_workers +",
        ),
        (
            "worker, workers = (info.id, info.num_workers) if info else (0, 1)\nn = worker + rank\nprint(workers)\n",
            13,
            "Write `rank * workers + worker`",
        ),
        ("first = start + rank\nmine = order[first:first + share]\n", 12, "Write `rank * share` for `rank`"),
        (
            "mine = order[start + rank:start + rank + 64 // world]\n",
            12,
            "Write `rank * (64 // world)` for `rank`",
        ),
        (
            "for i in range(start + rank, start + rank + share):\n    use(i)\n",
            12,
            "Write `rank * share` for `rank`",
        ),
        (
            "start = n * rank\nwhile more(start):\n    mine = order[start:start + n]\n    start += n\n",
            15,
            "Write `start += n * world` at `train.py:15`",
        ),
        (
            "n = total // world\nfor i in range(rank * n, len(order), n):\n    mine = order[i:i + n]\n",
            13,
            "Write `range(rank * n, len(order), n * world)`",
        ),
        (READER.format(step="self.size"), 22, "Write `self.at += self.size * self.ranks` at `train.py:22`"),
        (READER.format(step="self.size + 1"), 22, "Write `self.at += (self.size + 1) * self.ranks`"),
    ],
)
def test_what_makes_them_overlap(script: Callable[..., Script], text: str, line: int, hint: str) -> None:
    found = cause(script, text)
    assert found is not None
    assert found[0] == line
    assert hint in found[1]


@pytest.mark.parametrize(
    "text",
    [
        "order = torch.randperm(9, generator=draws)\nif rank == 0:\n    torch.randint(9, (2,), generator=other)\n",
        "order = torch.randperm(9, generator=draws)\ntorch.randint(9, (2,), generator=draws)\n",
        "order = torch.randperm(9, generator=draws)\nif rank == 0:\n    torch.randint(9, (2,))\n",
        "order = rng.permutation(9)\nif rank == 0:\n    print(names.choice(9))\n",
        "number = rank * info.num_workers + info.id\n",
        "number = rank + world * info.id\n",
        "first = start + rank * share\nmine = order[first:first + share]\n",
        "first = start + rank\nmine = order[first:first + 1]\n",
        "first = start + rank\nmine = order[first::world]\n",
        "for i in range(start + rank, len(order), world):\n    use(i)\n",
        "start = n * rank\nwhile more(start):\n    mine = order[start:start + n]\n    start += n * world\n",
        "start = n * rank\nwhole = n * world\nwhile 1:\n    mine = order[start:start + n]\n    start += whole\n",
        "start = len(order) // 2\nwhile 1:\n    mine = order[start:start + n]\n    start += n\n",
        "start = n * rank\nwhile more(start):\n    mine = order[other:other + n]\n    start += n\n",
        READER.format(step="self.size * self.ranks"),
    ],
)
def test_what_does_not(script: Callable[..., Script], text: str) -> None:
    assert cause(script, text) is None


def test_a_draw_from_the_global_generator_parts_later_epochs_alone(script: Callable[..., Script]) -> None:
    text = "order = torch.randperm(9)\nif rank == 0:\n    torch.randint(9, (2,))\n"
    assert cause(script, text) is None
    assert (cause(script, text, 1) or (0,))[0] == 14


@pytest.mark.parametrize(("share", "again"), [("order[rank::world]", False), ("order", True)])
def test_an_order_is_dealt_out_once(script: Callable[..., Script], share: str, again: bool) -> None:
    text = f"for epoch in range(9):\n    order = np.random.permutation(n)\n    learn(data[{share}])\n"
    parsed = script(HEAD + text)
    (order,) = parsed.called("permutation")
    assert ("[rank::world_size]" in divided(parsed, order)) is again
