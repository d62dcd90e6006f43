"""How many units of a sharded model are whole at once, as the first passes of training show it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.probe.warm_ranks import Ran

MODEL = """
from torch.distributed.fsdp import fully_shard
dist.init_process_group("gloo")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 8), *[nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8)) for _ in "1234"])
blocks = list(model)[1:]
"""
TRAIN = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    cross_entropy(model(torch.randn(6, 8)), torch.zeros(6, dtype=torch.long)).backward()
    optimizer.step()
dist.destroy_process_group()
"""
BLOCK = 8 * 16 + 16 + 16 * 8 + 8


@pytest.mark.parametrize(
    ("text", "whole", "backward", "rooted"),
    [
        ("for b in blocks:\n    fully_shard(b)\nfully_shard(model)\n", [], False, True),
        ("for b in blocks:\n    fully_shard(b, reshard_after_forward=b is not blocks[-1])\nfully_shard(model)\n",
         [3], True, True),
        ("for b in blocks:\n    fully_shard(b, reshard_after_forward=False)\nfully_shard(model)\n",
         [0, 1, 2, 3], True, True),
        ("for b in blocks:\n    fully_shard(b)\nfully_shard(model)\nmodel.set_reshard_after_forward(False)\n",
         [0, 1, 2, 3], True, True),
        ("for b in blocks:\n    fully_shard(b)\nfully_shard(model)\nfor b in blocks:\n    b.unshard()\n",
         [0, 1, 2, 3], False, True),
        # Each one is outermost by itself, and keeps its own.
        ("for b in blocks:\n    fully_shard(b)\n", [0, 1, 2, 3], True, False),
    ],
)  # fmt: skip
def test_what_is_whole_at_once_is_told(
    ranks: Callable[..., Ran], text: str, whole: list[int], backward: bool, rooted: bool
) -> None:
    ran = ranks(MODEL + text + TRAIN)
    assert not ran.events("unsupported")
    told: Any = ran.events("gathered", 1)[-1].fields
    assert told == {
        "backward": backward,
        "units": 4,
        "wraps": whole,
        "elements": BLOCK * len(whole),
        "of": 4 * BLOCK,
        "rooted": rooted,
    }


def test_a_part_that_some_ranks_gather_among_themselves_is_not_the_whole(ranks: Callable[..., Ran]) -> None:
    text = "for b in blocks:\n    fully_shard(b, reshard_after_forward=2)\nfully_shard(model)\n"
    ran = ranks(MODEL + text + TRAIN, nproc=4)
    assert [event.fields["wraps"] for event in ran.events("gathered")] == [[]]


def test_units_inside_units_count_once(ranks: Callable[..., Ran]) -> None:
    inner = "for b in blocks:\n    fully_shard(b[0])\n    fully_shard(b, reshard_after_forward=False)\n"
    text = f"{inner}fully_shard(model)\n"
    told = ranks(MODEL + text + TRAIN).events("gathered")[-1].fields
    assert (told["units"], told["wraps"], told["of"]) == (8, [1, 3, 5, 7], 4 * BLOCK)
    assert told["elements"] == 4 * (16 * 8 + 8)
