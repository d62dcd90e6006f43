"""GRAD001 over runs of sharded models: whether the last backward pass before a step reduced its gradients."""

from __future__ import annotations

from typing import Any

import pytest

from grader.model.grade import State
from grader.model.trace import Collective

TEXT = """import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
model = fully_shard(torch.nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, (x, y) in enumerate(loader):
    last = i % 2 == 1
    model.set_requires_gradient_sync({told})
    (loss_of(model(x), y) / 2).backward()
    if last:
        optimizer.step()
        optimizer.zero_grad()
"""


def accumulated(tell: Any, told: str, reducing: int, num_steps: int = 4) -> Any:
    """Two backward passes for each step, of which one reduces."""
    story = tell.Story()
    story.text = TEXT.format(told=told)
    story.group()
    story.wrap("fsdp2")
    for r in story.ranks:
        for step in range(num_steps):
            for backward in range(2):
                r.event("backward", 11)
                if backward == reducing:
                    call = Collective(
                        "reduce_scatter_tensor", tell.site(11), step + 1, 10, "", r.tick(), named=False
                    )
                    r.add("collectives", call)
            story.step(r.rank, None, backwards=2, synced=None)
    return story


def test_gradients_that_the_last_round_keeps_to_itself(tell: Any) -> None:
    look = accumulated(tell, "not last", 0).observation("GRAD001")
    assert look.state is State.CONTRADICTED
    assert look.hits[0].where[0].line == 10
    assert "`model.set_requires_gradient_sync(last)`" in look.hits[0].hint
    assert look.hits[0].fix is not None
    assert "in 4 steps" in look.hits[0].message


@pytest.mark.parametrize(("told", "reducing"), [("last", 1), ("not last", 1), ("last", 0)])
def test_it_takes_the_text_and_the_run(tell: Any, told: str, reducing: int) -> None:
    assert accumulated(tell, told, reducing).observation("GRAD001").state is State.NOT_OBSERVABLE


def test_one_step_is_too_few(tell: Any) -> None:
    assert accumulated(tell, "not last", 0, 1).observation("GRAD001").state is State.NOT_OBSERVABLE
