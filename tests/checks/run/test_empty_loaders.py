"""Loaders without a batch are named with their line and the reason; loaders that give some are not."""

from __future__ import annotations

from typing import Any

from grader.model.drawn_data import Pass
from grader.model.finding import Severity
from grader.model.grade import State
from grader.model.run import Ending


def drawn_dry(story: Any, rank: int, name: str, *, ends: bool = True, **loader: Any) -> None:
    """A pass of one rank that ends before its first batch."""
    r = story.ranks[rank]
    built = story.loader(rank, name, **loader)
    r.add("passes", Pass(built.id, 0, 0, None, r.tick(), r.tick(), ends))


def test_batches_larger_than_a_share(tell: Any) -> None:
    story = tell.Story()
    for rank in (0, 1):
        drawn_dry(story, rank, "train", batch_size=64, drop_last=True)
    (hit,) = story.observation("DATA010").hits
    assert "Ranks 0 and 1 got no batch at all from the loader at `train.py:11`" in hit.message
    assert "a rank's share has 48 samples" in hit.message
    assert "does not fill a batch of 64 is dropped" in hit.message
    assert "min(BATCH_SIZE, len(dataset) // world_size)" in hit.hint
    assert [place.line for place in hit.where] == [11]
    assert (hit.ranks, hit.severity) == ((0, 1), None)


def test_a_share_of_nothing_on_one_rank_is_a_hint(tell: Any) -> None:
    story = tell.honest()
    drawn_dry(story, 0, "more", size=12, sampler="SequentialSampler", num_replicas=None)
    story.loader(1, "more", size=0, sampler="SequentialSampler", num_replicas=None)
    drawn_dry(story, 1, "more")
    found = {hit.ranks: hit for hit in story.observation("DATA010").hits}
    assert found[0, 1].details["samples"] == 12
    assert "its sampler or data set gave no sample" in found[0, 1].message
    one = tell.honest()
    drawn_dry(one, 1, "more", size=0, sampler="SequentialSampler", num_replicas=None)
    (hit,) = one.observation("DATA010").hits
    assert "its share holds no samples" in hit.message


def test_an_empty_validation_is_a_hint(tell: Any) -> None:
    story = tell.honest()
    for rank in (0, 1):
        drawn_dry(story, rank, "second", split="validation", batch_size=256, drop_last=True)
    assert story.observation("DATA010").hits[0].severity is Severity.HINT


def test_what_was_built_counts_where_nothing_was_drawn_before_the_end(tell: Any) -> None:
    story = tell.Story()
    for rank in (0, 1):
        story.loader(rank, "train", batch_size=64, drop_last=True)
    assert story.observation("DATA010").state is State.NOT_REACHED
    story.ending = Ending.CRASHED
    assert story.observation("DATA010").state is State.CONTRADICTED


def test_loaders_that_give_batches_or_were_left_early(tell: Any) -> None:
    story = tell.honest()
    drawn_dry(story, 0, "looked_at", ends=False)
    story.loader(1, "unused", batch_size=640, drop_last=True)
    assert story.observation("DATA010").state is State.VERIFIED
