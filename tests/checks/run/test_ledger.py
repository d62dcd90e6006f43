"""The ledger tells apart what was trained on, evaluated and merely looked at, and matches passes across ranks."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from grader.checks.run.data.sample_ledger import Ledger


def test_training_and_validation_are_told_apart_without_names(tell: Any) -> None:
    story = tell.honest()
    ledger = story.evidence().ledger
    assert [s.kind for s in ledger.streams] == ["training", "validation"]
    assert [e.num_distinct for e in ledger.training[0].epochs] == [96, 96]
    assert ledger.training[0].epochs[0].complete
    assert ledger.training[0].site == tell.site(11)


def test_coverage_lists_indices_by_epoch_and_rank(tell: Any) -> None:
    coverage = tell.honest().evidence().ledger.coverage()
    assert len(coverage) == 2
    assert coverage[1] == tuple(tuple(s) for s in tell.strided(96, 2, 1).values())


def test_a_rank_that_trains_on_nothing_has_an_empty_row(tell: Any) -> None:
    story = tell.Story(world_size=3)
    shards = tell.strided(96, 2)
    story.epoch({1: shards[0], 2: shards[1]}, num_replicas=2)
    assert [len(row) for row in story.evidence().ledger.coverage()[0]] == [0, 48, 48]


def test_evaluation_in_the_middle_of_training_stays_evaluation(tell: Any) -> None:
    story = tell.Story()
    shards = tell.strided(96, 2)
    story.epoch({r: s[:24] for r, s in shards.items()}, name="train", exhausted=False)
    story.validate({0: range(30), 1: range(30)}, num_replicas=None)
    story.epoch({r: s[24:] for r, s in shards.items()}, name="train")
    assert [s.kind for s in story.evidence().ledger.streams] == ["training", "validation"]


def test_passes_of_a_single_batch_train_when_a_step_follows_each(tell: Any) -> None:
    story = tell.Story()
    for epoch in range(3):
        story.epoch(tell.strided(96, 2, epoch), batch=48)
        story.validate({0: range(30)}, batch=30, num_replicas=None)
    ledger = story.evidence().ledger
    assert [(s.kind, len(s.epochs)) for s in ledger.streams] == [("training", 3), ("validation", 3)]


def test_validation_between_batches_made_by_hand_stays_validation(tell: Any) -> None:
    story = tell.Story()
    for _ in range(3):
        for rank in (0, 1):
            story.step(rank, (1.0, 2.0))
        story.validate({0: range(15), 1: range(15, 30)}, batch=15, num_replicas=None)
    assert [(s.kind, len(s.epochs)) for s in story.evidence().ledger.streams] == [("validation", 3)]


def test_accumulation_over_several_batches_is_training(tell: Any) -> None:
    story = tell.Story()
    story.epoch(tell.strided(96, 2), every=4)
    assert [s.kind for s in story.evidence().ledger.streams] == ["training"]


def test_looking_at_the_data_is_neither_training_nor_validation(tell: Any) -> None:
    story = tell.Story()
    story.epoch({0: range(96), 1: range(96)}, name="statistics", every=10**6, num_replicas=None)
    story.epoch(tell.strided(96, 2), site=tell.site(50))
    assert [s.kind for s in story.evidence().ledger.streams] == ["training", "other"]


def test_a_loader_built_anew_in_each_epoch_is_one_stream(tell: Any) -> None:
    story = tell.Story()
    for epoch in range(3):
        story.epoch(tell.strided(96, 2, epoch), name=f"train of epoch {epoch}")
    assert [len(s.epochs) for s in story.evidence().ledger.streams] == [3]


def test_loaders_that_ranks_build_on_different_lines_are_one_stream(tell: Any) -> None:
    story = tell.Story()
    shards = tell.strided(96, 2)
    story.loader(0, "train", site=tell.site(60))
    story.loader(1, "train", site=tell.site(62))
    story.epoch(shards)
    stream = story.evidence().ledger.training[0]
    assert stream.epochs[0].ranks == (0, 1)


def test_an_endless_pass_is_cut_where_samples_come_again(tell: Any) -> None:
    story = tell.Story()
    long = {r: [i for e in range(3) for i in tell.strided(96, 2, 0)[r]] for r in range(2)}
    story.epoch(long, exhausted=None, sampler="InfiniteSampler")
    epochs = story.evidence().ledger.training[0].epochs
    assert [e.num_distinct for e in epochs] == [96, 96, 96]
    assert not epochs[0].own


def _by_hand(tell: Any, *, batch: int, epochs: int = 5, left: int | None = None) -> Any:
    """Shares of a new order in each epoch, cut into batches by hand; `left`: batches of the last epoch."""
    story = tell.Story(num_train=192)
    rng = random.Random(1)
    for epoch in range(epochs):
        order = rng.sample(range(192), 192)
        for rank in range(2):
            share = [f"row {n}" for n in order[rank::2]]
            batches = [share[n : n + batch] for n in range(0, 96, batch)]
            story.feed(rank, batches[:left] if epoch == epochs - 1 else batches)
    return story.evidence().ledger.training[0]


@pytest.mark.parametrize("batch", [1, 16, 20])
def test_epochs_of_permutations_by_hand_begin_with_a_batch(tell: Any, batch: int) -> None:
    stream = _by_hand(tell, batch=batch)
    assert stream.exact
    assert [[s.num_samples for s in e.shards] for e in stream.epochs] == [[96, 96]] * 5
    assert [e.num_shared for e in stream.epochs] == [0] * 5
    assert all(e.complete for e in stream.epochs)


def test_an_epoch_by_hand_that_is_left_is_no_whole_one(tell: Any) -> None:
    stream = _by_hand(tell, batch=16, left=2)
    assert stream.exact
    assert [e.complete for e in stream.epochs] == [True] * 4 + [False]
    assert [s.num_samples for s in stream.epochs[-1].shards] == [32, 32]


def test_boundaries_that_samples_tell_late_are_not_exact(tell: Any) -> None:
    story = tell.Story(num_train=192)
    rng = random.Random(1)
    for _ in range(5):
        order = rng.sample(range(192), 192)
        for rank, share in enumerate((order[:80], order[80:])):
            story.feed(rank, [[f"row {n}"] for n in share])
    (stream,) = story.evidence().ledger.training
    assert not stream.exact
    assert len(stream.epochs) >= 4


def test_draws_with_replacement_are_not_taken_for_epochs(tell: Any) -> None:
    rng = random.Random(0)
    story = tell.Story(num_train=1000)
    story.epoch({r: [rng.randrange(1000) for _ in range(500)] for r in range(2)}, sampler="RandomSampler")
    epochs = story.evidence().ledger.training[0].epochs
    assert len(epochs) == 1
    assert epochs[0].replacement


def test_hashes_take_the_place_of_unknown_indices(tell: Any) -> None:
    story = tell.Story(num_train=16)
    order = {r: [f"h{i}" for i in range(r, 16, 2)] for r in range(2)}
    for rank, hashes in order.items():
        for _ in range(3):
            story.feed(rank, [hashes[:4], hashes[4:]])
    ledger = story.evidence().ledger
    assert ledger.training[0].hashed
    assert [e.num_distinct for e in ledger.training[0].epochs] == [16, 16, 16]
    assert ledger.coverage() == ()


def test_a_trace_without_anything_gives_an_empty_ledger(tell: Any) -> None:
    trace = tell.Story().trace()
    bare = replace(trace, ranks=tuple(replace(r, start=None, ended=False) for r in trace.ranks))
    ledger = Ledger.of(bare)
    assert ledger.streams == ()
    assert ledger.coverage() == ()


def test_windows_of_a_text_that_stand_twice_in_it_end_no_epoch(tell: Any) -> None:
    """Each epoch deals all windows out anew; some passages stand twice in the text, and come again within one."""
    story = tell.Story()
    story.group()
    text = [f"w{n if n % 9 else 0}" for n in range(64)]
    orders = ([n * step % 64 for n in range(64)] for step in (1, 5, 11))
    shares = [[[text[n] for n in order[rank::2]] for rank in range(2)] for order in orders]
    for share in shares:
        for rank, mine in enumerate(share):
            story.feed(rank, [mine[n : n + 4] for n in range(0, 32, 4)])
    (stream,) = story.evidence().ledger.training
    assert [[s.num_samples for s in epoch.shards] for epoch in stream.epochs] == [[32, 32]] * 3
    assert stream.exact
    assert not any(epoch.replacement for epoch in stream.epochs)
