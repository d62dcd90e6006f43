"""What ring-all-reduce says of traffic: a ring's is the least; what is more, or travels otherwise, is named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from grader.evaluate.scorer.task_figures import Drawable
from grader.model.run_account import Exchange, RankAccount, RunAccount
from tests.evaluate.test_examinations import MODULES

TASK = MODULES["ring-all-reduce"]
GRADIENT = TASK._GRADIENT_BYTES * TASK._STEPS
EVERYBODY = (0, 1, 2, 3)
RANKS = tuple(RankAccount(rank, True, "gloo", (), 24) for rank in EVERYBODY)


def run(sent: Sequence[float], *others: Exchange, **known: Any) -> RunAccount:
    """Four ranks that sent so many gradients in each step."""
    messages = [
        Exchange(rank, "isend", 24, int(gradients * GRADIENT), EVERYBODY, (rank + 1) % 4, "train.py", 40)
        for rank, gradients in enumerate(sent)
        if gradients
    ]
    return RunAccount({"world_size": 4.0}, ranks=RANKS, exchanges=(*messages, *others), **known)


def said(account: RunAccount, name: str) -> tuple[float | None, str]:
    left = {"weights.pt": TASK._trained(4, "mean")}
    share, sentence, _ = TASK.examine(left, account)[name]
    return share, sentence


@pytest.mark.parametrize(
    ("sent", "share", "words"),
    [
        ((1.5, 1.5, 1.5, 1.5), 1.0, "2 · 3 / 4 = 1.50"),
        ((3, 3, 3, 3), 0.0, "Every rank's whole gradient went to all others"),
        ((3, 1, 1, 1), 0.0, "One rank gathers and tells the others"),
        ((6, 6, 6, 6), 0.0, "The whole gradient goes around twice"),
        ((0.75, 0.75, 0.75, 0.75), 0.0, "but of 4 bytes for each number, where the gradient's have 8"),
        ((0.375, 0.375, 0.375, 0.375), 0.0, "but of 2 bytes for each number"),
        ((1.0, 1.0, 1.0, 1.0), 0.0, "with less the ranks can't all know the mean"),
        ((0, 0, 0, 0), 0.0, "No rank sent a message to another."),
    ],
)
def test_traffic_is_held_against_a_rings(sent: tuple[float, ...], share: float, words: str) -> None:
    found = said(run(sent), "traffic")
    assert found[0] == share
    assert words in found[1]


RING = (1.5, 1.5, 1.5, 1.5)


@pytest.mark.parametrize(
    ("other", "share", "words"),
    [
        (("all_gather", GRADIENT), 0.0, "`all_gather` at train.py:50 carries 614,720 bytes"),
        (("all_gather_object", None), 0.0, "carries objects of any size"),
        (("all_reduce", 32), 1.0, "Messages went from rank to rank, 96 of them."),
        (("barrier", 0), 1.0, "96 of them"),
    ],
)
def test_gradients_may_not_travel_in_collectives(
    other: tuple[str, int | None], share: float, words: str
) -> None:
    name, size = other
    found = said(run(RING, Exchange(1, name, 4, size, EVERYBODY, None, "train.py", 50)), "by-hand")
    assert found[0] == share
    assert words in found[1]


def test_what_nobody_could_watch_is_left_to_a_person() -> None:
    account = run(RING, gaps=("Rank 2 told nothing.",))
    assert [said(account, name)[0] for name in ("by-hand", "traffic")] == [None, None]


@pytest.mark.parametrize("way", ["sum", "own", "twice", "running"])
def test_other_ways_to_put_gradients_together_are_known_by_their_weights(way: str) -> None:
    share, sentence, _ = TASK.examine({"weights.pt": TASK._trained(4, way)}, run(RING))["average"]
    assert share == 0.0
    assert TASK._WAYS[way][1] in sentence


def test_what_was_rounded_on_the_way_is_told_once_and_where() -> None:
    weights = {name: weight * 1.001 for name, weight in TASK._trained(4, "mean").items()}
    answers = TASK.examine({"weights.pt": weights}, run((0.375,) * 4))
    share, sentence, _ = answers["average"]
    assert share == 0.0
    assert "(train.py:40) with 2 bytes for each number, where they have 8" in sentence
    assert answers["traffic"] == (0.0, sentence, "")


def test_one_rank_has_nobody_to_send_to() -> None:
    weights = {name: torch.clone(weight) for name, weight in TASK._trained(1, "mean").items()}
    answers = TASK.examine({"weights.pt": weights}, RunAccount({"world_size": 1.0}))
    assert {name: answer[0] for name, answer in answers.items()} == {"average": 1.0}


def test_what_each_rank_sent_is_drawn_beside_the_least() -> None:
    (figure,) = TASK.figures(Drawable(None, None, None, None, "", {}, run((3, 1, 1, 1))))
    assert figure.panels[0].series[0].ys == pytest.approx((3, 1, 1, 1))
    assert figure.summary == "At most 3.00 gradients in a step; a ring of 4 needs 1.50."
    assert TASK.figures(Drawable(None, None, None, None, "", {}, RunAccount.silent(4))) == []


def test_what_a_collective_carried_in_place_of_messages_is_told_once() -> None:
    half = run(
        (0.75, 0.75, 0.75, 0.75), Exchange(1, "broadcast", 4, GRADIENT, EVERYBODY, None, "train.py", 50)
    )
    assert said(half, "traffic") == (0.5, said(half, "by-hand")[1])


@pytest.mark.parametrize(
    ("fault", "sent", "told"),
    [
        ("own parts", RING, "own parts"),
        ("first replaces", RING, "own parts"),  # leaves what a second lap leaves that begins elsewhere
        ("second adds", RING, "second adds"),
        ("halved", RING, "halved"),
        ("divided", RING, "divided"),
        ("first short", (1.25,) * 4, "first short"),
        ("second short", (1.25,) * 4, "second short"),
        ("no second", (0.75,) * 4, "no second"),
    ],
)
@pytest.mark.parametrize("how", [(False, 1, 0, False), (True, -1, 1, True)])
def test_a_lap_that_went_wrong_is_known_by_the_weights(
    fault: str, sent: tuple[float, ...], told: str, how: Any
) -> None:
    answers = TASK.examine({"weights.pt": TASK._around(4, fault, how)[0]}, run(sent))
    share, sentence, _ = answers["average"]
    assert share == 0.0
    assert TASK._LAPS[told] in sentence
    # One fault, told once.
    assert answers["traffic"][:2] == ((0.0, sentence) if sent != RING else (1.0, answers["traffic"][1]))


def test_a_ring_without_a_fault_comes_to_the_mean() -> None:
    for around in TASK._around(4, "", *TASK._HOWS):
        assert TASK._off(around, TASK._trained(4, "mean")) < TASK._TOLERANCE
