"""Data sets that are the rank's share themselves: equal indices on all ranks, and other samples behind them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from grader.model.evaluation import Evaluation
from grader.model.finding import Severity
from grader.model.grade import State
from grader.model.task import Expected

FLAGGED, CLEAN, UNSEEN = State.CONTRADICTED, State.VERIFIED, State.NOT_OBSERVABLE
PLAIN = {"dataset": "Share", "sampler": "RandomSampler", "num_replicas": None, "sampler_rank": None}


def states(story: Any, *codes: str) -> list[State]:
    return [story.observation(code).state for code in codes]


def look(story: Any, sample: Callable[[int, int], str]) -> None:
    """The probe looked at all that models were evaluated on: what a rank was given for an index."""
    for r in story.ranks:
        split = {one.id: one.split for one in r.fields["loaders"]}
        for b in r.fields["batches"]:
            if split[b.loader] != "train":
                hashes = [sample(r.rank, index) for index in b.indices]
                r.event(
                    "evaluated", hashes=hashes, loader=b.loader, n=b.n, validates=True, **{"pass": b.pass_}
                )


def keep(story: Any, state: Callable[[int, int], str], *, changed: bool = False) -> None:
    """Of each rank's data set in each of its passes."""
    for r in story.ranks:
        r.fields["passes"] = [
            replace(p, state=state(r.rank, p.n), changed=changed) for p in r.fields["passes"]
        ]


def labelled(story: Any, label: Callable[[int, int, int], int]) -> None:
    """What came in training: by rank, pass and index."""
    for r in story.ranks:
        r.fields["batches"] = [
            replace(b, labels=tuple(label(r.rank, b.pass_, index) for index in b.indices))
            for b in r.fields["batches"]
        ]


def scored(tell: Any, *sizes: int, num_validation: int = 30, split: str | None = "validation") -> Any:
    """Each rank validates on all of a set of its own, of this size."""
    story = tell.Story(num_validation=num_validation)
    story.group()
    story.wrap()
    story.epoch(tell.strided(96, 2))
    for rank, size in enumerate(sizes):
        told = {**PLAIN, "split": split, "root": size}
        story.validate({rank: list(range(size))}, reduce="all_reduce", **told)
    return story


# ---- validation ------------------------------------------------------------------------------------------------------


def test_shares_that_samples_tell_apart(tell: Any) -> None:
    story = scored(tell, 15, 15)
    look(story, lambda rank, index: f"sample {2 * index + rank}")
    assert states(story, "EVAL001", "EVAL003", "EVAL004") == [CLEAN] * 3
    assert "put together" in story.observation("EVAL001").reason


def test_shares_that_nobody_puts_together(tell: Any) -> None:
    story = scored(tell, 15, 15)
    look(story, lambda rank, index: f"sample {2 * index + rank}")
    for r in story.ranks:
        del r.fields["collectives"]
    seen = story.observation("EVAL001")
    assert seen.state is FLAGGED
    assert "rank 0: 15, rank 1: 15 of 30 samples" in seen.hits[0].message


def test_uneven_shares_that_what_they_hold_tells_apart(tell: Any) -> None:
    story = scored(tell, 16, 15, num_validation=31)
    for r in story.ranks:
        r.fields["loaders"] = [replace(one, digest=f"{r.rank}") for one in r.fields["loaders"]]
    assert states(story, "EVAL001", "EVAL003", "EVAL004", "EVAL014") == [CLEAN] * 4


@pytest.mark.parametrize(("kept", "state"), [("rank {}", CLEAN), ("one", UNSEEN)])
def test_shares_of_a_set_whose_length_nobody_knows(tell: Any, kept: str, state: State) -> None:
    # What a stage of a pipeline is given is not what the first one is given; its data set is.
    story = scored(tell, 15, 15, num_validation=0, split=None)
    look(story, lambda rank, index: f"sample {2 * index + rank}")
    keep(story, lambda rank, _: kept.format(rank))
    assert story.observation("EVAL004").state is state


def test_a_set_that_is_whole_on_each_rank_whatever_else_it_holds(tell: Any) -> None:
    story = scored(tell, 30, 30)
    for r in story.ranks:
        r.fields["loaders"] = [replace(one, digest=f"{r.rank}") for one in r.fields["loaders"]]
    keep(story, lambda rank, _: f"rank {rank}")
    look(story, lambda _, index: f"sample {index}")
    assert states(story, "EVAL001", "EVAL004") == [CLEAN, FLAGGED]


def test_shares_as_long_together_as_the_split_which_no_data_set_names(tell: Any) -> None:
    story = scored(tell, 16, 15, num_validation=31, split=None)
    for r in story.ranks:
        r.fields["loaders"] = [replace(one, digest=f"{r.rank}") for one in r.fields["loaders"]]
    assert states(story, "EVAL001", "EVAL003", "EVAL004") == [CLEAN] * 3


def test_shares_that_do_not_add_up(tell: Any) -> None:
    story = scored(tell, 12, 12)
    look(story, lambda rank, index: f"sample {2 * index + rank}")
    seen = story.observation("EVAL003")
    assert seen.state is FLAGGED
    assert "scored 24 of 30 validation samples" in seen.hits[0].message
    assert "these do not add up to the set" in seen.hits[0].message


def test_shares_that_overlap_are_not_said_to_be_all_there_is(tell: Any) -> None:
    story = scored(tell, 15, 15)
    look(story, lambda rank, index: f"sample {index + 7 * rank}")
    assert story.observation("EVAL003").state is UNSEEN


# ---- training --------------------------------------------------------------------------------------------------------


def dealt(tell: Any, label: Callable[[int, int, int], int]) -> Any:
    """Two epochs over shares of 48 samples, with these labels."""
    story = tell.Story()
    for epoch in range(2):
        for rank in range(2):
            order = tell.strided(48, 1, epoch)[0]
            story.epoch({rank: order}, root=48, digest="one", **PLAIN)
    labelled(story, label)
    return story


@pytest.mark.parametrize(("asked", "severity"), [(True, None), (False, Severity.HINT)])
def test_shares_of_the_ranks_own_that_stay_are_dealt_once(
    tell: Any, asked: bool, severity: Severity | None
) -> None:
    story = dealt(tell, lambda rank, _, index: (2 * index + rank) % 10)
    story.expected = Expected(new_shares=asked)
    (hit,) = story.observation("DATA002").hits
    assert hit.severity is severity
    assert "deals the samples out once" in hit.message
    assert "48 on rank 0 and 48 on rank 1" in hit.message
    whole = story.observation("DATA001").reason
    assert "no rank had all 96 samples" in whole
    assert "sets of their own" in story.observation("DATA003").reason
    assert "as many samples as there are: 96" in story.observation("DATA004").reason


def test_sets_of_the_ranks_own_are_looked_at_before_more_epochs_are_advised(tell: Any) -> None:
    story = dealt(tell, lambda rank, _, index: (2 * index + rank) % 10)
    story.evaluation = Evaluation(None, hidden={"accuracy": 0.4})
    story.levels = {"accuracy": 0.9}
    (hit,) = story.observation("EVAL013").hits
    assert "an index stands for another sample than on other ranks" in hit.message
    assert hit.hint.startswith("Look at what each rank trains on first")


def test_shares_of_the_ranks_own_that_are_dealt_anew(tell: Any) -> None:
    story = dealt(tell, lambda rank, epoch, index: (7 * epoch + 2 * index + rank) % 10)
    assert story.observation("DATA002").state is CLEAN


def test_whole_sets_that_each_rank_numbers_in_its_own_way_are_no_shares(tell: Any) -> None:
    story = dealt(tell, lambda rank, _, index: (2 * index + rank) % 10)
    story.known_train = 48
    assert story.observation("DATA002").state is CLEAN


@pytest.mark.parametrize("kept", ["rank {}", "a rank that the module knows"])
def test_shares_that_a_number_deals_out_are_told_by_labels(tell: Any, kept: str) -> None:
    story = dealt(tell, lambda rank, _, index: (2 * index + rank) % 10)
    keep(story, lambda rank, _: kept.format(rank))
    assert states(story, "DATA001", "DATA003", "DATA004", "TRUST002") == [CLEAN] * 4


def test_one_share_on_all_ranks_whatever_else_they_hold(tell: Any) -> None:
    story = dealt(tell, lambda rank, _, index: index % 10)
    keep(story, lambda rank, _: f"rank {rank}")
    assert story.observation("DATA001").state is FLAGGED


@pytest.mark.parametrize(
    ("anew", "changed", "holds"), [(True, False, False), (False, False, True), (True, True, True)]
)
def test_samples_that_are_dealt_anew_come_with_other_labels(
    tell: Any, anew: bool, changed: bool, holds: bool
) -> None:
    # What changes while samples are drawn is no deal.
    story = dealt(tell, lambda rank, epoch, index: (7 * epoch + 2 * index + rank) % 10)
    keep(story, lambda rank, epoch: f"rank {rank}, {epoch if anew else 0}", changed=changed)
    seen = story.observation("TRUST002")
    assert (seen.state is FLAGGED) is holds
    assert ("came with another label" in seen.reason) is holds
