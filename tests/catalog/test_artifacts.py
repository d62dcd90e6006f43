"""Files that a task asks for besides weights, as its author writes them down."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.catalog.tasks.task_folders import load_task
from grader.errors import TaskError
from grader.model.task import Artifact

ITEM = """\
[[rubric]]
id = "time"
title = "In time"
points = 10
metric = "time"
"""
ANSWERED = """\
[artifacts."table.csv"]
columns = { samples = "count", loss = "number" }

[artifacts."gradient.pt"]

[[rubric]]
id = "table"
title = "The table is right"
points = 10
must = true
answer = "table"
"""


def write(folder: Path, *changes: str) -> None:
    path = folder / "task.toml"
    text = path.read_text().replace(ITEM, ANSWERED)
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)


def complaint() -> str:
    with pytest.raises(TaskError) as raised:
        load_task("two-ranks")
    return str(raised.value)


def test_a_task_may_ask_for_tables_and_tensors(task_folder: Path) -> None:
    write(task_folder)
    assert complaint().endswith("evaluate.py: defines no function `examine`; add it.")
    with (task_folder / "evaluate.py").open("a") as file:
        file.write("def examine(left, run): ...\n")
    task = load_task("two-ranks")
    table = Artifact("table.csv", (("samples", "count"), ("loss", "number")))
    assert task.artifacts == (table, Artifact("gradient.pt"))
    assert task.rubric[-1].answer == "table"


def test_a_task_about_tables_alone_needs_no_network(task_folder: Path) -> None:
    accuracy = 'metric = "accuracy"\npartial = [{ of_target = 0.8, share = 0.25 }, { of_target = 0.9, share = 0.5 }]\n'
    write(
        task_folder,
        'datasets = ["digits"]\n',
        'datasets = ["digits"]\nscored = false\n',
        "[targets.accuracy]\nat_least = { digits = 0.9 }\n",
        "",
        accuracy,
        'answer = "whole"\n',
    )
    (task_folder / "evaluate.py").write_text("def examine(left, run): ...\n")
    assert not load_task("two-ranks").scored


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (("table.csv", "table.txt"), "is not spelled as it must be"),
        (('{ samples = "count", loss = "number" }', "{}"), "artifacts.table.csv: a table has columns"),
        (('"count"', '"whole"'), "'count', 'number' or 'text'"),
        (
            ('[artifacts."gradient.pt"]', '[artifacts."gradient.pt"]\ncolumns = { a = "count" }'),
            "holds tensors",
        ),
        (('answer = "table"', ""), "nothing earns its points"),
    ],
)
def test_its_author_is_told_what_makes_no_sense(
    task_folder: Path, changes: tuple[str, ...], said: str
) -> None:
    write(task_folder, *changes)
    assert said in complaint()


def test_an_answer_may_be_about_the_run_alone(task_folder: Path) -> None:
    path = task_folder / "task.toml"
    path.write_text(path.read_text().replace('metric = "time"', 'answer = "by-hand"'))
    assert complaint().endswith("evaluate.py: defines no function `examine`; add it.")
    with (task_folder / "evaluate.py").open("a") as file:
        file.write("def examine(left, run): ...\n")
    assert load_task("two-ranks").examined
