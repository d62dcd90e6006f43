"""The one command that measures the source halves says what it measured, and both numbers are 1."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from grader.checks.rule import load_rules
from tests import corpus

ROOT = Path(__file__).parents[2]


def test_precision_and_recall_over_the_corpus_are_one() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.corpus", "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    told = json.loads(done.stdout)
    assert told["all"]["wrong"] == told["all"]["missed"] == []
    assert told["all"]["precision"] == told["all"]["recall"] == 1.0
    assert done.returncode == 0
    assert told["all"]["files"] > 500
    assert {r.code for r in load_rules() if r.check_source} <= told.keys()


def test_a_wrong_line_and_a_missed_one_are_counted() -> None:
    tally = corpus.Tally()
    corpus.compare(tally, "x.py", {("DATA002", 3), ("DATA002", 4)}, {("DATA002", 3), ("DATA002", 9)})
    assert (tally.precision, tally.recall) == (0.5, 0.5)
    assert (tally.wrong, tally.missed) == (["x.py:4 DATA002"], ["x.py:9 DATA002"])
    assert corpus.marks("x = 1\ny = 2  # <- DATA002, GRAD001\n") == {("DATA002", 2), ("GRAD001", 2)}
