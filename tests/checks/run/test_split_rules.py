"""DATA006 to DATA009 over runs: order, common splits, common chance, and loaders that could not be built."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from grader.model.drawn_data import Pass
from grader.model.finding import Severity
from grader.model.grade import State
from grader.model.run import Ending
from grader.model.task import Expected

FLAGGED, CLEAN, UNSEEN = State.CONTRADICTED, State.VERIFIED, State.NOT_OBSERVABLE


# ---- DATA006 -----------------------------------------------------------------------------------------------------


def test_rising_indices_in_every_epoch(tell: Any) -> None:
    story = tell.Story(num_train=193)
    for _ in range(2):
        story.epoch(tell.strided(193, 2, shuffle=False), shuffle=False)
    look = story.observation("DATA006")
    assert look.state is FLAGGED
    assert "rising order" in look.hits[0].message
    assert "`train.py:11`" in look.hits[0].message
    assert look.hits[0].severity is None
    assert story.observation("DATA002").state is CLEAN
    assert "never dealt anew" in story.observation("DATA002").reason


def in_order(tell: Any, *, shift: int = 0) -> Any:
    """Two epochs of shares in rising order, in a task that asks for new ones; the second by `shift` ranks further."""
    story = tell.Story(num_train=192)
    story.expected = Expected(new_shares=True)
    for epoch in range(2):
        shares = tell.strided(192, 2, shuffle=False)
        story.epoch({r: shares[(r + epoch * shift) % 2] for r in range(2)}, shuffle=False)
    return story


def test_rising_indices_where_new_shares_are_asked_for(tell: Any) -> None:
    story = in_order(tell)
    (hit,) = story.observation("DATA006").hits
    assert hit.severity is Severity.WARNING
    assert "No epoch deals the samples out anew" in hit.message
    (again,) = story.observation("DATA002").hits
    assert "the same, rising order in each of 2 epochs (96 samples on rank 0)" in again.message


def test_rising_indices_of_other_shares_in_each_epoch(tell: Any) -> None:
    story = in_order(tell, shift=1)
    assert [hit.severity for hit in story.observation("DATA006").hits] == [None]
    assert story.observation("DATA002").state is CLEAN


@pytest.mark.parametrize(("text", "state"), [("random.shuffle(rows)\n", UNSEEN), ("train(rows)\n", FLAGGED)])
def test_rising_indices_may_stand_for_samples_that_are_mixed_anew(tell: Any, text: str, state: State) -> None:
    story = in_order(tell)
    story.text = text
    assert story.observation("DATA002").state is state


def test_rising_indices_that_stand_for_other_samples_in_each_epoch(tell: Any) -> None:
    story = in_order(tell)
    for r in story.ranks:
        r.fields["batches"] = [
            replace(b, labels=tuple((i + 3 * b.pass_) % 10 for i in b.indices)) for b in r.fields["batches"]
        ]
    seen = story.observation("DATA002")
    assert seen.state is CLEAN
    assert "deals the samples out itself" in seen.reason


@pytest.mark.parametrize(
    ("text", "advice"), [("sampler.set_epoch(epoch)\n", "then `set_epoch` gives"), ("", "call `s")]
)
def test_nobody_is_told_to_call_what_is_called(tell: Any, text: str, advice: str) -> None:
    story = in_order(tell)
    story.text = text
    assert advice in story.observation("DATA006").hits[0].hint


def test_the_sampler_that_was_told_not_to_shuffle(tell: Any) -> None:
    story = in_order(tell)
    story.text = (
        "import torch\nfrom torch.utils.data import DataLoader, DistributedSampler\n\n"
        "options = read()\nfor epoch in range(2):\n    sampler.set_epoch(epoch)\n    for x in loader:\n        pass\n\n"
        "sampler = DistributedSampler(data, shuffle=options.pop('shuffle'))\n"
        "loader = DataLoader(data, sampler=sampler)\n"
    )
    (hit,) = story.observation("DATA006").hits
    assert [place.line for place in hit.where] == [10, 11]
    assert hit.hint.startswith("Write `shuffle=True` at `train.py:10`")


KEPT = """import torch
from torch.utils.data import DataLoader, DistributedSampler, Subset

sampler = DistributedSampler(data)
for epoch in range(2):
    sampler.set_epoch(epoch)
{made}
loader = {loader}
"""


@pytest.mark.parametrize(
    ("made", "loader", "says", "hint"),
    [
        ("kept = tuple(sampler)", "DataLoader(data, sampler=kept)", "a list of what `sampler`", "Write `sampler`"),
        ("kept = list(sampler)", "DataLoader(Subset(data, kept))", "`set_epoch` at `train.py:6` changes", "`sampler=s"),
        ("kept = torch.randperm(9)[rank::2]", "DataLoader(Subset(data, kept))", "once for all epochs", "Draw it in"),
    ],
)  # fmt: skip
def test_an_order_that_was_kept_is_named(tell: Any, made: str, loader: str, says: str, hint: str) -> None:
    story = tell.Story()
    story.text = KEPT.format(made=made, loader=loader)
    for _ in range(2):
        story.epoch(tell.strided(96, 2, 1), site=tell.site(8))
    (hit,) = story.observation("DATA002").hits
    assert says in hit.message
    assert hint in hit.hint
    assert hit.where[0].line == 7


def test_mixed_order_is_shuffled(tell: Any) -> None:
    assert tell.honest(n=192).observation("DATA006").state is CLEAN


def test_data_shuffled_before_they_were_numbered(tell: Any) -> None:
    story = tell.Story(num_train=192)
    story.text = "rows = load()\nrandom.shuffle(rows)\n"
    story.epoch(tell.strided(192, 2, shuffle=False), shuffle=False)
    assert story.observation("DATA006").state is UNSEEN


BY_LABEL = """import torch
from torch.utils.data import DataLoader

class Batches:
    def __iter__(self):
        for whole in torch.randperm(len(labels)).view(-1, 64):
            whole = whole[labels[whole].argsort()]
            yield whole[rank * 32:(rank + 1) * 32].tolist()

loader = DataLoader(data, batch_sampler=Batches())
"""


def labelled(tell: Any, label: Callable[[int, int], int], batch: int = 32) -> Any:
    """Two epochs in which sample `n` of a rank has the label that is given."""
    story = tell.Story(num_train=640)
    story.text = BY_LABEL
    for epoch in range(2):
        story.epoch(tell.strided(640, 2, epoch), batch=batch, site=tell.site(10))
    for rank in story.ranks:
        told = [
            tell.replace(b, labels=tuple(label(rank.rank, n) for n in range(b.size)))
            for b in rank.fields["batches"]
        ]
        rank.fields["batches"] = told
    return story


def test_shares_that_are_cut_by_label(tell: Any) -> None:
    (hit,) = labelled(tell, lambda rank, n: 4 * rank + n % 5).observation("DATA006").hits
    assert "labels 0 to 4 on rank 0 and labels 4 to 8 on rank 1" in hit.message
    assert hit.where[0].line == 7
    assert hit.hint.startswith("Leave out `whole = whole[labels[whole].argsort()]` at `train.py:7`")


@pytest.mark.parametrize(
    ("label", "batch"),
    [
        (lambda rank, n: (n + rank) % 9, 32),  # mixed
        (lambda rank, n: 4 * rank + n % 6, 32),  # two classes in common
        (lambda rank, n: 4 * rank + n % 5, 8),  # too few samples to tell
        (lambda rank, n: rank, 32),  # two classes in all
    ],
)
def test_shares_that_are_not(tell: Any, label: Callable[[int, int], int], batch: int) -> None:
    assert labelled(tell, label, batch).observation("DATA006").state is CLEAN


# ---- DATA007 -----------------------------------------------------------------------------------------------------


SPLIT_ON_EACH_RANK = """\
import torch.distributed as dist
from torch.utils.data import random_split
dist.init_process_group("gloo")
train_set, val_set = random_split(everything, [9, 1])
"""


def split(n: int, num_val: int, seed: int) -> tuple[list[int], list[int]]:
    order = list(range(n))
    random.Random(seed).shuffle(order)
    return order[num_val:], order[:num_val]


def split_run(tell: Any, seeds: tuple[int, int], *, validate: bool = True) -> Any:
    """Two ranks divide a training set of 200 and score a validation set of 40, each split with its own seed."""
    story = tell.Story(num_train=240)
    for epoch in range(2):
        shards = {}
        for rank, seed in enumerate(seeds):
            train, _ = split(240, 40, seed)
            positions = tell.strided(200, 2, epoch)[rank]
            shards[rank] = [train[p] for p in positions]
        story.epoch(shards, size=200, sampler_epoch=epoch)
    if validate:
        parts = {rank: split(240, 40, seed)[1][rank::2] for rank, seed in enumerate(seeds)}
        story.validate(parts, split="train", size=20, reduce="all_reduce", site=None)
    return story


def test_what_one_rank_trains_on_another_one_validates_on(tell: Any) -> None:
    look = split_run(tell, (1, 2)).observation("DATA007")
    assert look.state is FLAGGED
    assert "trained on (first ones:" in look.hits[0].message
    assert look.hits[0].ranks == (0, 1)
    assert look.hits[0].severity is None


def test_a_common_split(tell: Any) -> None:
    story = split_run(tell, (1, 1))
    assert story.observation("DATA007").state is CLEAN
    assert story.observation("EVAL003").state is CLEAN


def test_equal_samplers_that_deal_the_same_sample_twice(tell: Any) -> None:
    look = split_run(tell, (1, 2), validate=False).observation("DATA007")
    assert look.state is FLAGGED
    assert "samplers agree on seed, epoch and size" in look.hits[0].message
    assert split_run(tell, (1, 1), validate=False).observation("DATA007").state is CLEAN


def test_samplers_with_different_seeds_are_another_matter(tell: Any) -> None:
    story = tell.Story()
    for rank in range(2):
        story.epoch({rank: tell.strided(96, 2, seed=rank)[rank]}, sampler_seed=rank)
    assert story.observation("DATA007").state is not FLAGGED
    assert story.observation("DATA003").state is FLAGGED


def test_validation_on_training_data_by_choice(tell: Any) -> None:
    story = tell.honest()
    story.validate(tell.strided(96, 2, shuffle=False), split="train", site=None)
    assert story.observation("DATA007").state is CLEAN


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("", Severity.WARNING),
        (SPLIT_ON_EACH_RANK, Severity.ERROR),
    ],
)
def test_training_sets_that_differ_in_content(tell: Any, text: str, severity: Severity) -> None:
    story = tell.Story()
    story.text = text or story.text
    for rank in range(2):
        story.epoch({rank: tell.strided(96, 2)[rank]}, digest=f"digest{rank}")
    look = story.observation("DATA007")
    assert look.state is FLAGGED
    assert look.hits[0].severity is severity
    assert "digest0 and digest1" in look.hits[0].message


def test_slices_of_their_own_need_not_be_equal(tell: Any) -> None:
    story = tell.Story()
    for rank in range(2):
        shards = {rank: random.Random(rank).sample(range(48), 48)}
        story.epoch(shards, sampler="RandomSampler", num_replicas=None, digest=f"digest{rank}", root=48)
    assert story.observation("DATA007").state is not FLAGGED


# ---- DATA008 -----------------------------------------------------------------------------------------------------


def chance(story: Any, states: tuple[str, str], drawn: list[str], family: str = "torch") -> Any:
    for rank, state in zip(story.ranks, states, strict=True):
        for n in range(3):
            rank.event(
                "random",
                n=n,
                states={family: f"{state}{n}", "python": f"{rank.rank}{n}"},
                drawn=drawn if n else [],
            )
        rank.event("seeded", 3, api="torch.manual_seed", value=0)
    return story


@pytest.mark.parametrize("family", ["torch", "numpy"])
def test_equal_generators_that_are_drawn_from(tell: Any, family: str) -> None:
    look = chance(tell.honest(), ("a", "a"), [family], family).observation("DATA008")
    assert look.state is FLAGGED
    assert "in the same state when training began" in look.hits[0].message
    assert look.hits[0].where[0].line == 3


def test_equal_generators_that_nobody_draws_from(tell: Any) -> None:
    assert chance(tell.honest(), ("a", "a"), []).observation("DATA008").state is CLEAN


def test_generators_in_different_states(tell: Any) -> None:
    assert chance(tell.honest(), ("a", "b"), ["torch"]).observation("DATA008").state is CLEAN


def test_workers_draw_what_cannot_be_seen(tell: Any) -> None:
    augmenting = (
        "from torch.utils.data import DataLoader\nfrom torchvision import datasets, transforms\n"
        "flip = transforms.RandomHorizontalFlip()\n"
        "train_set = datasets.FashionMNIST('data', transform=flip)\n"
        "for x, y in DataLoader(train_set, num_workers=2):\n    loss(x).backward()\n"
    )
    plain = tell.honest(num_workers=2)
    assert chance(plain, ("a", "a"), []).observation("DATA008").state is CLEAN
    story = tell.honest(num_workers=2)
    story.text = augmenting
    assert chance(story, ("a", "a"), []).observation("DATA008").state is FLAGGED


def test_an_old_trace_without_generators(tell: Any) -> None:
    assert tell.honest().observation("DATA008").state is UNSEEN


# ---- DATA009 and streams ------------------------------------------------------------------------------------------


def test_a_loader_that_refuses(tell: Any) -> None:
    story = tell.Story()
    story.group()
    story.ending = Ending.CRASHED
    for rank in story.ranks:
        message = "sampler option is mutually exclusive with shuffle"
        rank.event("exception", type="ValueError", message=message, frames=[["train.py", 11, "main"]])
    look = story.observation("DATA009")
    assert look.state is FLAGGED
    assert look.hits[0].where[0].line == 11
    assert tell.honest().observation("DATA009").state is CLEAN


def stream(tell: Any, copies: int) -> Any:
    story = tell.Story(num_train=80)
    for rank in range(2):
        built = story.loader(rank, "train", num_workers=2, sampler="", num_replicas=None)
        r = story.ranks[rank]
        r.fields["loaders"] = [replace(built, iterable=True, resolvable=False)]
        r.add("passes", Pass(built.id, 0, None, tell.site(20), r.tick(), None, None))
        mine = [f"{n:04x}" for n in range(rank, 80, 2)]
        batches = [mine[n : n + 8] for n in range(0, 40, 8) for _ in range(copies)]
        story.feed(rank, batches)
    return story


def test_workers_that_all_yield_the_whole_stream(tell: Any) -> None:
    look = stream(tell, 2).observation("DATA003")
    assert look.state is FLAGGED
    assert "trained on 40 samples 2.0 times each" in look.hits[0].message
    assert stream(tell, 1).observation("DATA003").state is not FLAGGED
