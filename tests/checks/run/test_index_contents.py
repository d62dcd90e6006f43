"""Equal indices are not equal samples: labels and hashes of what came tell which sample each of them stood for."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from grader.model.drawn_data import Feed
from grader.model.evaluation import Evaluation, ReportedMetrics
from grader.model.grade import State

FLAGGED, CLEAN, UNSEEN = State.CONTRADICTED, State.VERIFIED, State.NOT_OBSERVABLE
PLAIN = {
    "dataset": "Share",
    "sampler": "SequentialSampler",
    "num_replicas": None,
    "sampler_rank": None,
    "split": None,
}
NUM, PART = 192, 96


def came(
    story: Any, sample: Callable[[int, int, int], int], *, labels: bool = True, hashes: bool = True
) -> None:
    """Tell what came for each index: `sample(rank, epoch, index)` of ten classes."""
    for r in story.ranks:
        batches = r.fields["batches"]
        for n, batch in enumerate(batches):
            found = [sample(r.rank, batch.pass_, i) for i in batch.indices]
            if labels:
                batches[n] = replace(batch, labels=tuple(one * 7 % 10 for one in found))
            if hashes:
                told = tuple(f"{one:016x}" for one in found)
                r.add("feeds", Feed(batch.step, told, len(told), batch.t + 0.001, spot=True))


def dealt(rank: int, epoch: int, index: int, *, anew: bool) -> int:
    order = list(range(NUM))
    random.Random(epoch if anew else 0).shuffle(order)
    return order[index * 2 + rank]


def equal_indices(tell: Any, epochs: int = 4) -> Any:
    story = tell.Story(num_train=NUM)
    for _ in range(epochs):
        story.epoch({r: range(PART) for r in range(2)}, root=PART, digest="aa", site=tell.site(11), **PLAIN)
    return story


STALE = """import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset
dist.init_process_group("gloo")
class Share(Dataset):
    def __init__(self):
        self.epoch = 0
    def __getitem__(self, i):
        return base[deal(self.epoch)[i]]
share = Share()

loader = DataLoader(share, batch_size=8, num_workers=2, persistent_workers=True)
for epoch in range(4):
    share.epoch = epoch
    for x, y in loader:
        model(x).sum().backward()
        optimizer.step()
"""


@pytest.mark.parametrize("seen", ["labels", "hashes"])
def test_a_data_set_that_deals_by_rank_itself_divides_the_samples(tell: Any, seen: str) -> None:
    story = equal_indices(tell)
    assert story.observation("DATA001").state is FLAGGED, "as long as nobody looked at what came"
    came(story, lambda *at: dealt(*at, anew=False), labels=seen == "labels", hashes=seen == "hashes")
    assert story.observation("DATA001").state is CLEAN
    assert story.observation("DATA003").state is CLEAN, "parts of its own that add up to the training set"


def test_equal_indices_of_equal_samples_are_the_whole_set_on_every_rank(tell: Any) -> None:
    story = equal_indices(tell)
    came(story, lambda _rank, _epoch, index: index)
    assert story.observation("DATA001").state is FLAGGED


def test_ranks_that_augment_apart_still_draw_the_same_samples(tell: Any) -> None:
    story = equal_indices(tell)
    came(story, lambda _rank, _epoch, index: index, hashes=False)
    for r in story.ranks:
        for n, batch in enumerate(r.fields["batches"]):
            told = tuple(f"{r.rank}-{n}-{i}" for i in batch.indices)
            r.add("feeds", Feed(batch.step, told, len(told), batch.t + 0.001, spot=True))
    assert story.observation("DATA001").state is FLAGGED


def test_workers_that_persist_keep_the_first_epoch(tell: Any) -> None:
    story = equal_indices(tell)
    story.text = STALE
    came(story, lambda *at: dealt(*at, anew=False))
    (hit,) = story.observation("DATA002").hits
    assert "`train.py:13` sets the data set's `epoch` in the main process" in hit.message
    assert [p.line for p in hit.where] == [13, 8, 11]
    assert "Leave `persistent_workers=True` out at `train.py:11`" in hit.hint


def test_a_data_set_that_deals_anew_in_each_epoch_is_right(tell: Any) -> None:
    story = equal_indices(tell)
    for r in story.ranks:
        r.fields["passes"] = [replace(one, state=str(one.n)) for one in r.fields["passes"]]
    came(story, lambda *at: dealt(*at, anew=True))
    assert {c: story.observation(c).state for c in ("DATA001", "DATA002")} == {
        "DATA001": CLEAN,
        "DATA002": CLEAN,
    }
    assert story.observation("TRUST002").state is CLEAN, (
        "other labels for an index are its own way of dealing"
    )


def test_whether_a_data_set_of_ones_own_shuffles_is_not_known(tell: Any) -> None:
    story = equal_indices(tell)
    came(story, lambda *at: dealt(*at, anew=False))
    assert story.observation("DATA002").state is UNSEEN


# ---- one pass, and its batches again -----------------------------------------------------------------------------

CYCLED = """import itertools
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler
dist.init_process_group("gloo")
loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
batches = itertools.cycle(loader)
for step in range(40):
    x, y = next(batches)
    model(x).sum().backward()
    optimizer.step()
"""


def one_pass(tell: Any, in_order: bool = False) -> Any:
    story = tell.Story()
    story.text = CYCLED
    shards = {r: list(range(r, 96, 2)) for r in range(2)} if in_order else tell.strided(96, 2, 0)
    story.epoch(shards, shuffle=not in_order)
    came(story, lambda _rank, _epoch, index: index)
    return story


def kept(story: Any, rank: int) -> list[tuple[str, ...]]:
    return [feed.hashes for feed in story.ranks[rank].fields["feeds"]]


def test_batches_that_are_kept_and_given_again_are_no_new_order(tell: Any) -> None:
    story = one_pass(tell)
    for rank in range(2):
        story.feed(rank, kept(story, rank) * 3)
    (hit,) = story.observation("DATA002").hits
    assert "drew 6 batches in one pass" in hit.message
    assert "in the same order, for another 18 batches" in hit.message
    assert "`itertools.chain.from_iterable(itertools.repeat(loader))`" in hit.hint
    assert hit.where[0].line == 6


def test_batches_that_are_kept_and_shuffled_are_not_the_same_order(tell: Any) -> None:
    story = one_pass(tell)
    for rank in range(2):
        own = kept(story, rank)
        for epoch in range(3):
            story.feed(rank, random.Random(epoch).sample(own, len(own)))
    look = story.observation("DATA002")
    assert look.state is UNSEEN
    assert "18 batches came from elsewhere" in look.reason


def test_batches_of_a_set_that_nobody_shuffles_have_no_order_to_lose(tell: Any) -> None:
    story = one_pass(tell, in_order=True)
    for rank in range(2):
        story.feed(rank, kept(story, rank) * 3)
    assert story.observation("DATA002").state is not FLAGGED


# ---- parts that are divided once more ----------------------------------------------------------------------------

TWICE = """import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler
dist.init_process_group("gloo")
rank = dist.get_rank()
text = Windows("train.txt")
text.numbers = text.numbers[rank * part : (rank + 1) * part]
loader = DataLoader(text, batch_size=8, sampler=DistributedSampler(text), drop_last=True)
for x, y in loader:
    model(x).sum().backward()
    optimizer.step()
"""


def parts(tell: Any, sample: Callable[[int, int, int], int]) -> Any:
    story = tell.Story(num_train=0)
    story.known_train = None
    story.text = TWICE
    for epoch in range(4):
        for rank, shard in tell.strided(PART, 2, epoch).items():
            story.epoch(
                {rank: shard}, dataset="Windows", split=None, root=PART, digest=f"{rank}", site=tell.site(7)
            )
    came(story, sample)
    return story


def test_parts_that_a_sampler_divides_once_more_leave_half_of_them_out(tell: Any) -> None:
    story = parts(tell, lambda rank, _epoch, index: rank * PART + index)
    (hit,) = story.observation("DATA004").hits
    assert "96 (50 %) were left out" in hit.message
    assert [p.line for p in hit.where] == [6, 7]
    assert hit.hint.startswith("Divide once")
    assert story.observation("DATA007").state is UNSEEN


def test_one_set_in_two_orders_is_no_pair_of_parts(tell: Any) -> None:
    story = parts(tell, lambda rank, _epoch, index: index if rank else PART - 1 - index)
    assert story.observation("DATA004").state is not FLAGGED
    assert story.observation("DATA007").state is FLAGGED


# ---- epochs that cannot be counted -------------------------------------------------------------------------------


def test_epochs_of_fed_samples_that_never_come_again_are_not_counted(tell: Any) -> None:
    story = tell.Story()
    for rank in range(2):
        story.feed(rank, [[f"{rank}-{step}-{n}" for n in range(8)] for step in range(24)])
    story.evaluation = Evaluation(
        None,
        hidden={"accuracy": 0.4},
        reported=ReportedMetrics(({"val_accuracy": 0.2}, {"val_accuracy": 0.4})),
    )
    story.levels = {"accuracy": 0.9}
    (hit,) = story.observation("EVAL013").hits
    assert "Training took 2 epochs, 24 steps" in hit.message
