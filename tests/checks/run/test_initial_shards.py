"""GRAD007 over runs of sharded models: what the text says of seeds, and the states of the ranks' generators."""

from __future__ import annotations

from typing import Any

import pytest

from grader.model.grade import State
from grader.model.trace import Collective

TEXT = """import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
torch.manual_seed(7 + dist.get_rank())
model = fully_shard(torch.nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss_of(model(x), y).backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("states", "sent", "state"),
    [
        (("a", "b"), False, State.CONTRADICTED),
        (("a", "a"), False, State.NOT_OBSERVABLE),
        (("", "b"), False, State.NOT_OBSERVABLE),
        (("a", "b"), True, State.NOT_OBSERVABLE),
    ],
)
def test_weights_drawn_by_rank_and_sharded(
    tell: Any, states: tuple[str, str], sent: bool, state: State
) -> None:
    story = tell.Story()
    story.text = TEXT
    story.group()
    story.wrap("fsdp2")
    for rank, told in zip(story.ranks, states, strict=True):
        if sent:
            rank.add("collectives", Collective("broadcast", tell.site(7), 1, 8, "", rank.tick()))
        rank.event("random", n=0, states={"torch": told})
    story.epoch(tell.strided(32, 2))
    look = story.observation("GRAD007")
    assert look.state is state
    if state is State.CONTRADICTED:
        assert look.hits[0].where[0].line == 6
        assert "Seed with `7` alone" in look.hits[0].hint
        assert look.hits[0].fix is not None


def test_replicas_made_with_another_seed_on_each_rank_name_it(tell: Any) -> None:
    story = tell.Story()
    story.text = TEXT.replace("fully_shard(torch.nn.Linear(4, 2))", "torch.nn.Linear(4, 2)")
    story.group()
    story.epoch(tell.strided(96, 2))
    for rank in range(2):
        story.params(rank, 0, (1.0 + rank, 0.5, 1e-9))
    look = story.observation("GRAD007")
    assert look.state is State.CONTRADICTED
    assert [w.line for w in look.hits[0].where] == [6, 7]
    assert "seeds each rank with another number, `7 + dist.get_rank()`" in look.hits[0].message
