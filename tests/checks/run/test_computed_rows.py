"""Rows of other runs in a table: brought along in the text, measured, or worked out of this run's own clock."""

from __future__ import annotations

from typing import Any

import pytest

from grader.model.evaluation import Answer, Evaluation
from grader.model.grade import State

BROUGHT = (18.4, 36.2, 10.9)
HEAD = """import csv
import time
import torch
import torch.distributed as dist

COLUMNS = ["ranks", "batch_size", "learning_rate", "epochs", "seconds", "accuracy"]
dist.init_process_group("gloo")
ranks = dist.get_world_size()
"""
TRAIN = """

def train(model, optimizer, loader):
    history = []
    begin = time.perf_counter()
    for epoch in range(10):
        started = time.perf_counter()
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        history.append({"accuracy": 0.9, "seconds": time.perf_counter() - started})
    seconds = time.perf_counter() - begin
    table(history, seconds)
"""
FACTOR = """

def table(history, seconds):
    pace = sum(e["seconds"] for e in history) / len(history)

    def row(on, batch_size, lr, epochs):
        factor = ranks / on
        return on, batch_size, lr, epochs, pace * factor * epochs, 0.9  # <-

    runs = [row(1, 64, 0.02, 3), row(1, 64, 0.1, 3), (ranks, 32, 0.1, 10, seconds, 0.97)]
    csv.writer(open("runs.csv", "w")).writerows([COLUMNS, *runs])
"""
LOOP = """

def table(history, seconds):
    runs = []
    for on in (1, 2, ranks):
        runs.append((on, 32, 0.1, 10, seconds * ranks / on, 0.97))  # <-
    csv.writer(open("runs.csv", "w")).writerows([COLUMNS, *runs])
"""
DICTIONARIES = """

def table(history, seconds):
    own = dict(ranks=ranks, batch_size=32, learning_rate=0.1, epochs=10, seconds=seconds, accuracy=0.97)
    alone = dict(ranks=1, batch_size=32, learning_rate=0.1, epochs=10, seconds=1.9 * seconds, accuracy=0.96)  # <-
    slow = dict(ranks=1, batch_size=64, learning_rate=0.1, epochs=10, seconds=seconds * 2.1, accuracy=0.95)
    csv.DictWriter(open("runs.csv", "w"), COLUMNS).writerows([alone, slow, own])
"""
CONSTANTS = """

RUNS = [(1, 64, 0.02, 3, 18.4, 0.393), (1, 64, 0.1, 6, 36.2, 0.877), (2, 32, 0.05, 3, 10.9, 0.869)]


def table(history, seconds):
    runs = [*RUNS, (ranks, 32, 0.1, 10, seconds, 0.97)]
    csv.writer(open("runs.csv", "w")).writerows([COLUMNS, *runs])
"""
MINUTES = """

RUNS = [(1, 64, 0.02, 3, 1104.0, 0.393), (1, 64, 0.1, 6, 2172.0, 0.877), (2, 32, 0.05, 3, 654.0, 0.869)]


def table(history, seconds):
    rows = []
    for on, batch_size, lr, epochs, took, accuracy in [*RUNS, (ranks, 32, 0.1, 10, seconds, 0.97)]:
        rows.append((on, batch_size, lr, epochs, took / 60, accuracy))
    csv.writer(open("runs.csv", "w")).writerows([COLUMNS, *rows])
"""
REPEATED = """

TIMES = {1: [18.3, 18.5], 2: [36.1, 36.3]}


def table(history, seconds):
    pace = seconds / len(history)
    runs = [(1, 64, 0.1, n, sum(t) / len(t), 0.9) for n, t in TIMES.items()]
    runs.append((ranks, 32, 0.1, 10, pace * 10, 0.97))
    csv.writer(open("runs.csv", "w")).writerows([COLUMNS, *runs])
"""
EARLIER = """

def table(history, seconds):
    with open("earlier.csv") as file:
        runs = [[float(x) for x in row] for row in csv.reader(file)]
    runs = [[r[0], r[1], r[2], r[3], r[4] * r[3], r[5]] for r in runs]
    runs.append([ranks, 32, 0.1, 10, seconds, 0.97])
    csv.writer(open("runs.csv", "w")).writerows([COLUMNS, *runs])
"""
OWN_MEAN = """

def row(on, batch_size, lr, epochs, seconds, accuracy):
    return on, batch_size, lr, epochs, round(seconds, 2), accuracy


def table(history, seconds):
    pace = sum(e["seconds"] for e in history) / len(history)
    runs = [row(1, 64, 0.1, 3, 18.4, 0.9), row(1, 64, 0.1, 6, 36.2, 0.9), row(ranks, 32, 0.1, 10, pace * 10, 0.97)]
    csv.writer(open("runs.csv", "w")).writerows([COLUMNS, *runs])
"""


def told(tell: Any, table: str, brought: tuple[float, ...] = BROUGHT) -> Any:
    story = tell.honest()
    story.text = HEAD + table + TRAIN
    answer = Answer(1.0, "Runs that can be compared.", "runs.csv", {"seconds": brought})
    story.evaluation = Evaluation(None, answers={"comparison": answer})
    return story.observation("EVAL010"), story.text.splitlines()


@pytest.mark.parametrize("table", [FACTOR, LOOP, DICTIONARIES])
def test_rows_that_are_worked_out_of_this_run_are_told(tell: Any, table: str) -> None:
    look, lines = told(tell, table)
    (hit,) = look.hits
    assert lines[hit.where[0].line - 1].endswith("# <-")
    assert "runs.csv has 3 rows of other runs, and `seconds` of such rows is worked out" in hit.message
    assert hit.details["answers"] == {"comparison": 0.0}


@pytest.mark.parametrize(
    "table",
    [CONSTANTS, MINUTES, REPEATED, EARLIER, OWN_MEAN],
    ids=["constants", "minutes", "repeated", "earlier", "own mean"],
)
def test_rows_that_were_measured_are_right(tell: Any, table: str) -> None:
    assert told(tell, table)[0].state is State.VERIFIED
    assert told(tell, table, (7.77, 8.88))[0].state is State.VERIFIED


def test_where_the_task_says_nothing_of_other_runs_nothing_is_looked_for(tell: Any) -> None:
    assert told(tell, FACTOR, ())[0].state is State.VERIFIED
