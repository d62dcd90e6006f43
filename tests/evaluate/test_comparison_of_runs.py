"""The assessment's table of runs: held against the run that left it, and what is read in it against the table."""

from __future__ import annotations

from typing import Any

import pytest

from grader.model.run_account import PassAccount, RunAccount, UpdateAccount
from tests.evaluate.test_examinations import MODULES

TASK = MODULES["assessment"]
NUMBERS = {
    "world_size": 2.0,
    "wall_s": 14.0,
    "cpu_s": 12.0,
    "num_train": 1200.0,
    "steps_of_32": 370.0,
    "steps_of_24": 10.0,
    "validation_accuracy": 0.975,
}
RUN = RunAccount(NUMBERS, updates=(UpdateAccount(0, 0, "SGD", 380, 12_000, 0.001, 0.05, 0.0),))
OWN = {"ranks": 2, "batch_size": 32, "learning_rate": 0.05, "epochs": 10, "seconds": 9.5, "accuracy": 0.975}
ALONE = {"ranks": 1, "batch_size": 64, "learning_rate": 0.05, "epochs": 3, "seconds": 5.7, "accuracy": 0.877}
SLOW = ALONE | {"learning_rate": 0.002, "seconds": 5.8, "accuracy": 0.4}
RIGHT = {"most_accurate": 3, "quickest_of_the_best": 3, "speedup": 2.0}
"""1.9 s for an epoch alone, 0.95 s together."""


def answers(
    rows: list[dict[str, Any]], told: dict[str, Any] = RIGHT, run: RunAccount = RUN
) -> dict[str, Any]:
    found: dict[str, Any] = TASK.examine({"runs.csv": rows, "answers.csv": [told]}, run)
    return found


def test_a_table_that_agrees_with_the_run_and_is_read_rightly_earns_all() -> None:
    found = answers([SLOW, ALONE, OWN])
    assert (found["comparison"][0], found["reading"][0]) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("rows", "share", "said"),
    [
        ([SLOW, ALONE], 0.0, "None of the 2 rows of runs.csv is this run: 2 ranks, 32 images on each"),
        ([SLOW, ALONE, OWN | {"batch_size": 64}], 0.0, "None of the 3 rows"),
        ([SLOW, ALONE, OWN | {"accuracy": 0.999}], 0.0, "the saved weights reach 0.975"),
        ([SLOW, ALONE, OWN | {"seconds": 90.0}], 0.0, "from start to end the run took 14.0 s"),
        ([SLOW, ALONE, OWN | {"learning_rate": 0.4}], 0.0, "the highest that was seen is 0.05"),
        ([SLOW, ALONE | {"seconds": 0.5}, OWN], 0.5, "Row 2 of runs.csv comes to 7,200 images per second"),
        ([SLOW, ALONE | {"seconds": 5.8}, OWN], 0.5, "Rows 1 and 2 of runs.csv tell the same time"),
        ([SLOW, ALONE | {"accuracy": 87.7}, OWN], 0.5, "a share lies between 0 and 1"),
        ([SLOW, ALONE | {"epochs": 0}, OWN], 0.5, "Row 2 of runs.csv has no ranks, batch, epochs or seconds"),
        ([ALONE, OWN], 0.5, "2 different configurations; 3 are asked for"),
        ([OWN | {"epochs": e, "seconds": e * 0.95} for e in (3, 5, 10)], 0.5, "no run on one rank"),
    ],
)
def test_what_makes_no_sense_beside_the_run_is_named(
    rows: list[dict[str, Any]], share: float, said: str
) -> None:
    found = answers(rows)["comparison"]
    assert found[0] == share
    assert said in found[1]


def accumulating(*, loader: int = 16) -> RunAccount:
    """Ten epochs; each step of 32 images is made of several batches of the loader."""
    drawn = PassAccount(0, "training", "FashionMNIST", "train", 0, 38, 600, 600, True, batch_samples=loader)
    return RunAccount(NUMBERS | {"samples": 12_000.0}, updates=RUN.updates, passes=(drawn,))


@pytest.mark.parametrize("batch", [16, 32])
def test_the_loaders_batch_and_that_of_a_step_are_both_one_ranks_batch(batch: int) -> None:
    """Also beside a shorter run that the other reading fits."""
    tried = OWN | {"batch_size": 32, "epochs": 4, "seconds": 4.1, "accuracy": 0.912}
    own = OWN | {"batch_size": batch}
    for rows in ([ALONE, tried, own], [ALONE, own, tried]):
        share, said, *_ = answers(rows, run=accumulating())["comparison"]
        assert (share, f"row {rows.index(own) + 1} is this one" in said) == (1.0, True)


def test_the_row_that_is_blamed_is_the_one_that_fits_best() -> None:
    tried = OWN | {"epochs": 3, "seconds": 3.1, "accuracy": 0.9, "learning_rate": 0.01}
    last = answers([ALONE, tried, OWN | {"learning_rate": 1e-6}], run=accumulating())["comparison"]
    assert (last[0], last[1].startswith("Row 3 of runs.csv is this run, and it tells a learning rate")) == (
        0,
        True,
    )


def test_a_batch_that_a_rank_feeds_only_a_part_of_is_not_its_own() -> None:
    share, said, *_ = answers([SLOW, ALONE, OWN | {"batch_size": 64}], run=accumulating(loader=64))[
        "comparison"
    ]
    assert (share, "32 images on each in a step." in said) == (0.0, True)


def test_a_run_whose_steps_nobody_saw_blames_no_table() -> None:
    account = RunAccount(
        {name: number for name, number in NUMBERS.items() if not name.startswith("steps_of_")}
    )
    share, said, *_ = answers([SLOW, ALONE, OWN], run=account)["comparison"]
    assert (share, said.startswith("No training step was seen")) == (None, True)


def test_accuracies_of_1_throughout_are_not_believed() -> None:
    run = RunAccount(NUMBERS | {"validation_accuracy": 1.0})
    found = answers([row | {"accuracy": 1.0} for row in (SLOW, ALONE, OWN)], run=run)["comparison"]
    assert found[0] == 0.5
    assert "All rows of runs.csv tell an accuracy of 1" in found[1]


def test_a_busy_judge_blames_no_run_that_was_made_on_an_idle_machine() -> None:
    """The same run, which waited ten times as long as it computed."""
    run = RunAccount(NUMBERS | {"wall_s": 130.0})
    assert answers([SLOW, ALONE, OWN | {"seconds": 120.0}], run=run)["comparison"][0] == 1.0


@pytest.mark.parametrize(
    ("told", "share", "said"),
    [
        ({"most_accurate": 2}, 2 / 3, "`most_accurate` is 2; by runs.csv it is row 3"),
        ({"quickest_of_the_best": 1, "speedup": 3.0}, 1 / 3, "`speedup` is 3; by runs.csv it is 2"),
        (
            {"speedup": 0.6},
            2 / 3,
            "it is 5.7 s / 9.5 s of whole runs, which have different numbers of epochs.",
        ),
        ({"speedup": 0.5}, 2 / 3, "by runs.csv it is 2: it is the other way round, several ranks' seconds"),
        ({"speedup": 2.08}, 1.0, "All three questions"),
    ],
)
def test_each_question_is_held_against_the_learners_own_table(
    told: dict[str, Any], share: float, said: str
) -> None:
    found = answers([SLOW, ALONE, OWN], RIGHT | told)["reading"]
    assert found[0] == pytest.approx(share)
    assert said in found[1]


def test_the_quickest_of_the_best_need_not_be_the_best() -> None:
    quick = OWN | {"seconds": 4.0, "accuracy": 0.969, "epochs": 5}
    found = answers([SLOW, ALONE, quick, OWN], RIGHT | {"most_accurate": 4, "speedup": 1.9 / 0.8})["reading"]
    assert found[0] == 1.0


def test_times_of_other_runs_are_brought_along_where_this_one_trained_once() -> None:
    """Of several trainings in one run others may be measured, too."""
    rows = [SLOW, ALONE, OWN]
    once = RunAccount(NUMBERS | {"samples": 12_000.0}, updates=RUN.updates)
    several = RunAccount(NUMBERS | {"samples": 15_600.0}, updates=RUN.updates)
    assert answers(rows, run=once)["comparison"][2:] == ("runs.csv", {"seconds": [5.8, 5.7]})
    assert answers(rows, run=several)["comparison"][2:] == ("runs.csv", {})
