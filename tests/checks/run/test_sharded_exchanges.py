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


def accumulated(
    tell: Any, told: str, reducing: int, num_steps: int = 4, lines: tuple[int, int] = (11, 11)
) -> Any:
    """Two backward passes for each step, of which one reduces."""
    story = tell.Story()
    story.text = TEXT.format(told=told)
    story.group()
    story.wrap("fsdp2")
    for r in story.ranks:
        for step in range(num_steps):
            for backward in range(2):
                r.event("backward", lines[backward])
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


@pytest.mark.parametrize("told", ["last", "not last"])
def test_a_last_round_that_reduces_is_right_whatever_the_text_says(tell: Any, told: str) -> None:
    assert accumulated(tell, told, 1).observation("GRAD001").state is State.NOT_OBSERVABLE


def test_an_earlier_round_that_reduces_in_the_place_of_the_last_one(tell: Any) -> None:
    look = accumulated(tell, "flags[i]", 0).observation("GRAD001")
    assert look.state is State.CONTRADICTED
    assert look.hits[0].where[0].line == 10
    assert "in an earlier micro-batch of each step" in look.hits[0].message
    assert "is added to the next one's" in look.hits[0].message


def test_without_a_switch_nobody_says_whose_the_last_pass_is(tell: Any) -> None:
    story = accumulated(tell, "flags[i]", 0)
    story.text = story.text.replace("    model.set_requires_gradient_sync(flags[i])\n", "")
    assert story.observation("GRAD001").state is State.NOT_OBSERVABLE


def test_another_model_that_goes_backward_last_has_nothing_to_reduce(tell: Any) -> None:
    assert (
        accumulated(tell, "flags[i]", 0, lines=(11, 12)).observation("GRAD001").state is State.NOT_OBSERVABLE
    )


def test_one_step_is_too_few(tell: Any) -> None:
    assert accumulated(tell, "not last", 0, 1).observation("GRAD001").state is State.NOT_OBSERVABLE
