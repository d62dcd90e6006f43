"""OPT001 and OPT003 over runs whose text tells what the batch or the rate was counted by."""

from __future__ import annotations

from typing import Any

import pytest

from grader.model.grade import State
from grader.model.task import Expected

RATES = """import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

BASE, WHOLE = 16, 128

dist.init_process_group("gloo")
loader = DataLoader(train_set, WHOLE // dist.get_world_size(), sampler=DistributedSampler(train_set))
rate = 0.1 * {factor}
optimizer = torch.optim.SGD(model.parameters(), lr=rate)
for x, y in loader:
    optimizer.zero_grad()
    loss_of(model(x), y).backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("factor", "rate", "state"),
    [
        ("loader.batch_size / BASE", 0.4, State.CONTRADICTED),
        ("(loader.batch_size / BASE) ** 0.5", 0.2, State.CONTRADICTED),
        ("loader.batch_size / BASE", 0.8, State.VERIFIED),  # another rate than it looks like
        ("loader.batch_size * dist.get_world_size() / BASE", 0.4, State.VERIFIED),
        ("4", 0.4, State.VERIFIED),  # between the rules, and meant
    ],
)
def test_a_rate_of_one_ranks_batch(tell: Any, factor: str, rate: float, state: State) -> None:
    story = tell.Story()
    story.group()
    story.wrap()
    for r in range(2):
        for _ in range(12):
            story.step(r, None, 64, lr=(rate,))
    story.text = RATES.format(factor=factor)
    story.expected = Expected(base_learning_rate=0.1, base_batch_size=16, scaling=("linear", "sqrt"))
    look = story.observation("OPT001")
    assert look.state is state
    if state is State.CONTRADICTED:
        assert look.hits[0].where[0].line == 9
        assert "loader.batch_size * dist.get_world_size()" in look.hits[0].hint
        assert look.hits[0].fix is not None


def test_a_rate_that_counts_the_ranks_twice_is_written_without_them(tell: Any) -> None:
    story = tell.Story()
    story.group()
    story.wrap()
    for r in range(2):
        for _ in range(12):
            story.step(r, None, 8, lr=(0.4,))
    story.text = (
        "import torch\nimport torch.distributed as dist\n\nlr = 0.1\nlr *= dist.get_world_size()\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=lr * dist.get_world_size())\n"
        "for x, y in loader:\n    optimizer.zero_grad()\n    loss_of(model(x), y).backward()\n    optimizer.step()\n"
    )
    story.expected = Expected(base_learning_rate=0.1, base_batch_size=16, scaling=("linear", "sqrt"))
    (hit,) = story.observation("OPT001").hits
    assert "Leave `lr *= dist.get_world_size()` out at `train.py:5` and write `lr` instead of" in hit.hint
    assert hit.fix is not None


SIZES = """import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler


class Job:
    def __init__(self):
        dist.init_process_group("gloo")
        self.gpus = torch.cuda.device_count() or 1
        self.batch = 128 // self.gpus
        self.loader = DataLoader(train_set, batch_size=self.batch, sampler=DistributedSampler(train_set))
"""


def test_a_batch_divided_by_gpus_instead_of_ranks(tell: Any) -> None:
    story = tell.Story(num_train=1280)
    story.epoch(tell.strided(1280, 2), batch=128, batch_size=128)
    story.text = SIZES
    story.expected = Expected(global_batch_size=128)
    hit = story.observation("OPT003").hits[0]
    assert hit.where[0].line == 10
    assert "`128 // dist.get_world_size()`" in hit.hint
    assert "divides by `self.gpus`, the GPUs that one process sees" in hit.message
    assert hit.fix is not None


TWICE = """
from dataclasses import dataclass
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

@dataclass
class Config:
    batch: int
    world: int

    @classmethod
    def read(cls, batch=128):
        world = dist.get_world_size()
        return cls(batch=batch // world, world=world)

dist.init_process_group("gloo")
config = Config.read()
loader = DataLoader(train_set, batch_size=config.batch // config.world, sampler=DistributedSampler(train_set))
"""


@pytest.mark.parametrize(
    ("text", "lines", "words"),
    [
        (
            TWICE,
            [18, 14],
            "`train.py:14` divides it by the number of ranks, `batch // world`, and `train.py:18` does",
        ),
        (
            TWICE.replace("batch // world, w", "size_of_a_part(), w"),
            [18],
            "divides what is one rank's part already",
        ),
    ],
)
def test_a_batch_divided_twice_is_divided_once(tell: Any, text: str, lines: list[int], words: str) -> None:
    story = tell.Story(num_train=1280)
    story.epoch(tell.strided(1280, 2), batch=32, batch_size=32, site=tell.site(18))
    story.text = text
    story.expected = Expected(global_batch_size=128)
    hit = story.observation("OPT003").hits[0]
    assert list(dict.fromkeys(place.line for place in hit.where)) == lines
    assert words in hit.message
    assert "write `config.batch` instead of `config.batch // config.world`" in hit.hint or len(lines) == 1
    assert "dist.get_world_size()" not in hit.hint
