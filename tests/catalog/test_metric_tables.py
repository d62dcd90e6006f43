"""What an author writes about metrics, and what is said of what does not fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.catalog.tasks.task_folders import load_task
from grader.errors import TaskError
from grader.model.metric import ACCURACY, Direction, Metric
from grader.model.task import Target

OLD = "[targets.accuracy]\nat_least = { digits = 0.9 }\n"
PARTIAL = "partial = [{ of_target = 0.8, share = 0.25 }, { of_target = 0.9, share = 0.5 }]"


def written(folder: Path, tables: str, *, metric: str = "accuracy", partial: str = PARTIAL) -> None:
    path = folder / "task.toml"
    text = path.read_text()
    assert OLD in text
    assert PARTIAL in text
    text = text.replace(OLD, tables).replace('metric = "accuracy"', f'metric = "{metric}"')
    path.write_text(text.replace(PARTIAL, partial))


def complaint() -> str:
    with pytest.raises(TaskError) as refused:
        load_task("two-ranks")
    return str(refused.value)


def test_a_file_from_before_metrics_had_names_means_accuracy(task_folder: Path) -> None:
    task = load_task("two-ranks")
    assert task.metrics == (ACCURACY,)
    assert task.levels("digits") == {"accuracy": 0.9}


def test_metrics_are_loaded_in_their_order_with_what_follows_from_what_is_written(task_folder: Path) -> None:
    tables = (
        '[metrics.perplexity]\nat_most = 30\ndecimals = 1\nunit = "words"\n'
        '[metrics.top-5]\ntitle = "top-5 accuracy"\nshare = true\ndirection = "max"\nreported_as = "val_top5"\n'
    )
    written(task_folder, tables, metric="perplexity", partial="partial = [{ of_target = 1.2, share = 0.5 }]")
    task = load_task("two-ranks")
    assert task.metrics == (
        Metric(
            "perplexity",
            "perplexity",
            "words",
            1,
            Direction.MIN,
            0.5,
            share=False,
            reported_as="val_perplexity",
        ),
        Metric("top-5", "top-5 accuracy", "", 3, Direction.MAX, 0.005, share=True, reported_as="val_top5"),
    )
    assert task.targets[0] == Target("perplexity", levels={"digits": 30})
    assert task.rubric[0].steps == ((1.2, 0.5),)


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ("[metrics.accuracy]\nat_least = 0.9\nat_most = 0.95\n", "keep one of the two targets"),
        ('[metrics.accuracy]\nat_least = 0.9\ndirection = "min"\n', "'min' contradicts `at_least`"),
        (
            "[metrics.accuracy]\nshare = true\n",
            'metrics.accuracy.direction: is missing. Write `direction = "max"`',
        ),
        ("[metrics.accuracy]\nshare = true\nat_least = 90\n", "at_least: a share lies between 0 and 1"),
        ("[metrics.accuracy]\nat_least = { digit = 0.9 }\n", "(did you mean digits?)"),
        ("[metrics.accuracy]\nat_least = -1.5\n", "only of a target above 0 a multiple is something near"),
        ("[metrics.accuracy]\nat_most = 0.1\n", "for accuracy, of_target lies above 1"),
        (f"[metrics.accuracy]\nat_least = 0.9\n{OLD}", "write `at_least` into [metrics.accuracy] instead"),
        ("[metrics.acuracy]\nat_least = 0.9\n", "there is no [metrics.accuracy] (did you mean acuracy?)"),
        (
            "[metrics.accuracy]\nat_least = 0.9\n[metrics.speedup]\nat_least = 2\n",
            "has a number of that name",
        ),
        (
            '[metrics.accuracy]\nat_least = 0.9\n[metrics.f1]\nat_least = 1\nreported_as = "val_accuracy"\n',
            "'val_accuracy' is what accuracy is reported as",
        ),
        ('[metrics.accuracy]\ndirection = "max"\n', "[metrics.accuracy] sets no target"),
        ("[metrics.accuracy]\nat_least = 0.9\ngoal = 1\n", "metrics.accuracy.goal: there is no such key"),
    ],
)
def test_what_does_not_fit_is_said_with_what_to_write(task_folder: Path, tables: str, said: str) -> None:
    written(task_folder, tables)
    assert said in complaint()
