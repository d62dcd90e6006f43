"""GRAD012 over runs whose epochs end amid the micro-batches of a step."""

from __future__ import annotations

from typing import Any

import pytest

from grader.model.drawn_data import Batch, Pass
from grader.model.finding import Severity
from grader.model.grade import State

TEXT = """import torch
from torch.nn.parallel import DistributedDataParallel

model = DistributedDataParallel(net)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    {begin}
    for number, (x, y) in enumerate(loader, start=1):
        full = number % 3 == 0
        (torch.nn.functional.cross_entropy(model(x), y) / 3).backward()
        if full:
            optimizer.step()
            optimizer.zero_grad()
"""


def told(
    tell: Any, *, empty: int | None = 1, begin: str = "pass", num_batches: int = 8, carried: bool = True
) -> Any:
    """Three epochs of so many micro-batches, three for a step; what is over is carried along, or thrown away."""
    story = tell.Story()
    story.text = TEXT.format(begin=begin)
    story.group()
    story.wrap("ddp")
    for r in story.ranks:
        left = 0
        for epoch in range(3):
            begun = r.tick()
            for n in range(num_batches):
                r.add("batches", Batch(0, epoch, n, 8, (), 0.001, r.steps, r.tick()))
                left += 1
                if (n + 1) % 3 == 0 or (not carried and left == 3):
                    looked = 1 if left == 3 else empty
                    story.step(r.rank, (1.0, 2.0), 8 * left, backwards=left, empty=looked)
                    left = 0
            r.add("passes", Pass(0, epoch, epoch, tell.site(8), begun, r.tick(), True))
    return story


def test_what_an_epoch_leaves_over_is_in_the_next_ones_first_step(tell: Any) -> None:
    look = told(tell).observation("GRAD012")
    assert look.state is State.CONTRADICTED
    [hit] = look.hits
    assert hit.severity is Severity.HINT
    assert hit.where[0].line == 11
    assert "after 5 in the first step of an epoch, 2 times" in hit.message
    assert "`number % 3 == 0 or number == len(loader)`" in hit.hint


def test_where_nobody_looked_the_text_tells_that_steps_alone_clear(tell: Any) -> None:
    assert told(tell, empty=None).observation("GRAD012").state is State.CONTRADICTED
    look = told(tell, empty=None, begin="optimizer.zero_grad()").observation("GRAD012")
    assert look.state is not State.CONTRADICTED


@pytest.mark.parametrize("how", [{"empty": 2}, {"num_batches": 9}, {"carried": False}])
def test_cleared_before_an_epoch_nothing_over_or_counted_through(tell: Any, how: dict[str, Any]) -> None:
    assert told(tell, **how).observation("GRAD012").state is not State.CONTRADICTED
