"""GRAD001 where all ranks were seeded alike: equal gradients count only if something could have averaged them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from grader.model.grade import State


def twins(tell: Any, sequence: int | None) -> Any:
    """Two ranks, never wrapped, with equal gradients in six steps, and that many collectives below Python."""
    story = tell.Story()
    story.group()
    for rank in range(2):
        for step in range(6):
            story.step(rank, (1.0, 2.0, float(step)), synced=None)
    for rank in range(2):
        story.ranks[rank].event("end", group_destroyed=True, sequence=sequence)
    return story


def test_nothing_was_sent(tell: Any) -> None:
    look = twins(tell, 0).observation("GRAD001")
    assert look.state is State.CONTRADICTED
    assert "the very same work" in look.hits[0].message
    assert look.hits[0].ranks == (0, 1)
    assert look.hits[0].where[0].line == 25
    assert "DistributedDataParallel" in look.hits[0].hint


@pytest.mark.parametrize("sequence", [6, 24])
def test_a_hand_written_average_is_one(tell: Any, sequence: int) -> None:
    assert twins(tell, sequence).observation("GRAD001").state is State.VERIFIED


def test_barriers_average_nothing(tell: Any) -> None:
    story = twins(tell, 7)
    for rank in range(2):
        for line in range(40, 47):
            story.collective(rank, "barrier", line)
    assert story.observation("GRAD001").state is State.CONTRADICTED


def test_an_average_in_a_group_of_its_own(tell: Any) -> None:
    story = twins(tell, 0)
    for rank in range(2):
        for line in range(40, 46):
            story.collective(rank, "all_reduce", line)
    assert story.observation("GRAD001").state is State.VERIFIED


def test_without_a_count_nothing_is_held_against_it(tell: Any) -> None:
    assert twins(tell, None).observation("GRAD001").state is State.VERIFIED


def test_a_wrapper_is_enough(tell: Any) -> None:
    story = twins(tell, 0)
    story.wrap()
    assert story.observation("GRAD001").state is State.VERIFIED


def test_a_wrapper_over_one_rank_alone_averages_nothing(tell: Any) -> None:
    story = twins(tell, 0)
    story.wrap(line=9)
    for rank in story.ranks:
        rank.fields["wraps"] = [replace(wrap, replicas=(rank.rank,)) for wrap in rank.fields["wraps"]]
    look = story.observation("GRAD001")
    assert look.state is State.CONTRADICTED
    assert look.hits[0].where[0].line == 9
    assert "process_group" in look.hits[0].hint
