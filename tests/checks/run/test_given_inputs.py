"""What models were given against what their ranks drew: one rank's batch on all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from grader.checks.run.data.given_inputs import shared_openly
from grader.model.drawn_data import Feed
from grader.model.grade import State

BROADCAST = """import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
model = DistributedDataParallel(network)


def send(*tensors):
    for tensor in tensors:
        dist.broadcast(tensor, src=0)
    return tensors


for epoch in range(2):
    loader.sampler.set_epoch(epoch)
    for x, y in loader:
        x, y = send(x, y)
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
    for weight in model.parameters():
        dist.broadcast(weight, src=0)
"""


def given(tell: Any, sample: Callable[[int, int, int], str], text: str = BROADCAST) -> Any:
    """Two epochs of a divided set, where step `n` of a rank is given `sample(rank, n, index)`."""
    story = tell.Story()
    story.text = text
    story.wrap()
    for epoch in range(2):
        story.epoch(tell.strided(96, 2, epoch), sampler_epoch=epoch, site=tell.site(5))
    for r in story.ranks:
        for batch in r.fields["batches"]:
            told = tuple(sample(r.rank, batch.step, i) for i in batch.indices)
            r.add("feeds", Feed(batch.step, told, len(told), batch.t + 0.001, spot=True))
        r.fields["steps"] = [replace(s, wraps=(0,)) for s in r.fields["steps"]]
    return story


def of_rank_0(tell: Any) -> Callable[[int, int, int], str]:
    """Whatever was drawn, the samples of the first rank came."""
    orders = [tell.strided(96, 2, epoch)[0] for epoch in range(2)]
    batches = [order[n : n + 8] for order in orders for n in range(0, 48, 8)]
    shares = [tell.strided(96, 2, epoch) for epoch in range(2)]

    def sample(rank: int, step: int, index: int) -> str:
        place = list(shares[step // 6][rank]).index(index) % 8
        return f"{batches[step][place]:016x}"

    return sample


def test_one_rank_s_batch_on_all_ranks(tell: Any) -> None:
    story = given(tell, of_rank_0(tell))
    look = story.observation("DATA001")
    assert look.state is State.CONTRADICTED
    (hit,) = look.hits
    assert [place.line for place in hit.where] == [11, 5]
    assert "Ranks 0 and 1 drew different samples" in hit.message
    assert "the same ones in each of 12 steps looked at" in hit.message
    assert "Take `dist.broadcast(tensor, src=0)` at `train.py:11` out" in hit.hint
    assert shared_openly(story.evidence())


def test_what_is_shared_without_a_word_of_it_stays_for_a_person(tell: Any) -> None:
    story = given(tell, of_rank_0(tell), BROADCAST.replace("x, y = send(x, y)", "x, y = other(x, y)"))
    assert story.observation("DATA001").state is State.CONTRADICTED
    assert not shared_openly(story.evidence())
    unsynced = given(tell, of_rank_0(tell))
    for r in unsynced.ranks:
        r.fields["steps"] = [replace(s, synced=False) for s in r.fields["steps"]]
    assert not shared_openly(unsynced.evidence())


@pytest.mark.parametrize(
    "sample",
    [
        lambda _rank, _step, index: f"{index:016x}",  # each what it drew
        lambda _rank, _step, _index: f"{7:016x}",  # a constant, such as one row of positions
    ],
)
def test_inputs_that_tell_of_no_shared_batch(tell: Any, sample: Callable[[int, int, int], str]) -> None:
    story = given(tell, sample)
    assert not any("their models were given" in hit.message for hit in story.observation("DATA001").hits)


def test_a_model_in_parts_has_to_be_given_the_same(tell: Any) -> None:
    text = (
        BROADCAST.replace(
            "model = ",
            "mesh = init_device_mesh('cpu', (2,))\nnetwork = parallelize_module(network, mesh, plan)\nmodel = ",
        )
        .replace(
            "import torch.distributed as dist",
            "import torch.distributed as dist\nfrom torch.distributed.device_mesh import init_device_mesh\n"
            "from torch.distributed.tensor.parallel import parallelize_module",
        )
        .replace("model = DistributedDataParallel(network)", "model = network")
    )
    story = given(tell, of_rank_0(tell), text)
    assert story.observation("DATA001").state is not State.CONTRADICTED
