"""What single samples counted for in steps that were taken again: a fixed part without weight, and classes by rank."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from grader.checks.run.gradients.counted_samples import muted_classes, never_learnt
from grader.model.audited_step import AuditedStep, CountedSample
from grader.model.evaluation import Evaluation
from grader.model.grade import State
from tests.checks.run.test_grad_rules import muted

NUM_TRAIN, NUM_STEPS, SIZE = 300, 6, 48
Weigh = Callable[[int, int, int, int, int, float, Random], float]
"""Weight by step, rank, index, place, label, loss, chance."""


def run(tell: Any, weigh: Weigh, *, reshuffled: bool = True, steps: int = NUM_STEPS) -> Any:
    """Averaged gradients of two ranks, and steps of as many epochs, each sample with such a weight."""
    random, audited = Random(3), []
    order = list(range(NUM_TRAIN))
    for n in range(steps):
        if reshuffled or not n:
            random.shuffle(order)
        samples = []
        for rank in range(2):
            for place, index in enumerate(order[rank * SIZE : (rank + 1) * SIZE]):
                label, loss = index // 2 % 10, random.random() * 2.3
                weight = weigh(n, rank, index, place, label, loss, random)
                samples.append(CountedSample(rank, index, place, label, weight, loss))
        audited.append(AuditedStep(7 * n, 0, (0.5, 0.5), (0.5, 0.5), 0.4, tuple(samples)))
    story = muted(tell, lambda step, parameter: 1.0)
    story.evaluation = Evaluation(None, audited=tuple(audited))
    return story


def parity(_step: int, _rank: int, index: int, *_: Any) -> float:
    return 2.0 * (index % 2)


def parity_by_rank(_step: int, rank: int, index: int, *_: Any) -> float:
    return 2.0 * (index % 2 == rank)


@pytest.mark.parametrize("weigh", [parity, parity_by_rank])
def test_a_fixed_part_that_is_never_learnt_from_is_held(tell: Any, weigh: Weigh) -> None:
    look = run(tell, weigh).observation("TRUST002")
    assert look.state is State.CONTRADICTED
    (fact,) = look.hits[0].details["facts"]
    assert "it is a fixed part" in fact
    assert "0 found it changed" in fact
    assert run(tell, weigh).observation("GRAD001").state is State.VERIFIED


HONEST: dict[str, Weigh] = {
    "chance": lambda _n, _r, _i, _p, _l, _loss, random: 2.0 * (random.random() < 0.5),
    "hard examples": lambda _n, _r, _i, _p, _l, loss, _: 2.0 * (loss > 1.1),
    "easy examples": lambda _n, _r, _i, _p, _l, loss, _: 1.4 * (loss < 1.6),
    "focal": lambda _n, _r, _i, _p, _l, loss, _: loss**3,
    "places in a batch": lambda _n, _r, _i, place, *_: 2.0 * (place < SIZE // 2),
    "classes left out on all ranks": lambda _n, _r, _i, _p, label, *_: 2.0 * (label < 5),
    "rare classes": lambda _n, _r, _i, _p, label, *_: 2.0 if label > 7 else 0.1,
    "more of the set from epoch to epoch": lambda n, _r, index, *_: 1.0 * (index * 7 % 100 < 30 + 14 * n),
    "a tenth is wrong": lambda _n, _r, index, *_: 1.1 * (index % 10 > 0),
    "a scale of weights": lambda _n, _r, index, *_: (index * 37 % 100 / 60) ** 3,
    "all alike": lambda *_: 1.0,
}


@pytest.mark.parametrize("weigh", HONEST.values(), ids=HONEST.keys())
def test_ways_to_weigh_samples_are_no_fact(tell: Any, weigh: Weigh) -> None:
    story = run(tell, weigh)
    assert never_learnt(story.evidence()) == ""
    assert muted_classes(story.evidence()) is None
    assert story.observation("TRUST002").state is State.VERIFIED
    assert story.observation("GRAD001").state is State.VERIFIED


def test_an_order_that_comes_again_says_nothing_of_samples(tell: Any) -> None:
    """What belongs to a place in the batch would seem to belong to what stands there each time."""
    story = run(tell, HONEST["places in a batch"], reshuffled=False)
    assert never_learnt(story.evidence()) == ""
    assert never_learnt(run(tell, parity, reshuffled=False).evidence()) == ""


def test_few_steps_say_nothing(tell: Any) -> None:
    by_rank = run(tell, lambda _n, rank, _i, _p, label, *_: 2.0 * (label % 2 == rank), steps=2)
    assert muted_classes(by_rank.evidence()) is None
    assert never_learnt(run(tell, parity, steps=2).evidence()) == ""


def test_classes_that_only_one_rank_learns_from_are_told(tell: Any) -> None:
    story = run(tell, lambda _n, rank, _i, _p, label, *_: 1.98 if label % 2 == rank else 0.02)
    (hit,) = story.observation("GRAD001").hits
    assert hit.ranks == (0, 1)
    assert (
        "samples of classes 1, 3, 5, 7 and 9 on rank 0 and of classes 0, 2, 4, 6 and 8 on rank 1 counted"
        in hit.message
    )
    assert "counted for 2.0% of what they do where all samples count alike" in hit.message
    assert "Weigh classes alike on all ranks." in hit.hint
    assert story.observation("TRUST002").state is State.VERIFIED


def test_classes_that_count_less_on_a_rank_are_no_classes_without_weight(tell: Any) -> None:
    """As where each rank computes weights from its own share."""
    story = run(tell, lambda _n, rank, _i, _p, label, *_: 1.5 if label % 2 == rank else 0.5)
    assert story.observation("GRAD001").state is State.VERIFIED
