"""What a task's `examine()` is told of a run: who did what with whom, what may be missing, all of it data for JSON."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from grader.evaluate.scorer import run_accounts
from grader.evaluate.scorer.run_accounts import account_of
from grader.model.call_site import Site
from grader.model.dataset import PreparedDataset
from grader.model.run import Ending, RankRecord, RunRecord
from grader.model.run_account import RunAccount
from grader.model.trace import Collective, Event, RankTrace, Start, Trace
from grader.model.traffic import Traffic

AT = Site("train.py", 41, "ring")
START = Start("2.15", "3.12", 0, 0, 2, 1, 0)
END = Event("end", 2.0, None, {"sequence": 7})


def rank(number: int, *traffic: Traffic) -> RankTrace:
    return RankTrace(number, START, True, traffic=traffic, others=(END,))


def account(dataset: PreparedDataset, *traces: RankTrace) -> RunAccount:
    records = tuple(
        RankRecord(n, 0, False, 0.0, 1.0, 0.5, 0.0, 1, 0, 0, 0, False, 10, False) for n in range(len(traces))
    )
    record = RunRecord("process", "fork", False, len(traces), Ending.COMPLETED, "", 2.0, 60.0, records, ())
    made = account_of(record, Trace(traces), dataset)
    told = json.loads(json.dumps(asdict(made), allow_nan=False))
    assert RunAccount.from_json(told) == made, "nothing is lost on the way into the container"
    return made


def test_messages_and_collectives_are_told_apart(noise_data: PreparedDataset) -> None:
    run = account(
        noise_data,
        rank(
            0,
            Traffic("isend", AT, None, 1, 20, 800),
            Traffic("recv", AT, None, 1, 20, 800),
            Traffic("all_reduce_coalesced", AT, (0, 1), None, 1, 40),
            Traffic("store.set", AT, None, None, 1, None),
            Traffic("barrier", None, None, None, 2, 0),
        ),
        rank(1),
    )
    assert (run.world_size, run["world_size"], run.ending) == (2, 2.0, "completed")
    assert [(m.name, m.sends, m.peer, m.bytes, m.where) for m in run.messages] == [
        ("isend", True, 1, 800, "train.py:41"),
        ("recv", False, 1, 800, "train.py:41"),
    ]
    assert [one.name for one in run.collectives()] == ["all_reduce_coalesced", "barrier"]
    assert [one.among for one in run.collectives("all_reduce")] == [(0, 1)]
    assert run.collectives("all_gather") == ()
    assert run.ranks[0].num_collectives == 7
    assert run.gaps == ()


def test_what_may_be_missing_is_said(noise_data: PreparedDataset) -> None:
    """A rank that was killed told of some calls; one that never began of nothing; one was captured in a graph."""
    calls = (Collective("all_reduce", AT, n, 10, "SUM", 1.0) for n in (1, 2, 64))
    killed = RankTrace(0, START, False, collectives=tuple(calls))
    captured = replace(rank(2), others=(Event("captured", 1.0, None, {"what": "step"}), END))
    run = account(noise_data, killed, RankTrace(1, None, False), captured)
    assert [(one.calls, one.bytes) for one in run.collectives("all_reduce")] == [(64, None)]
    assert [one.complete for one in run.ranks] == [False, False, False]
    assert [gap.partition(":")[0] for gap in run.gaps] == [
        "Rank 0 told nothing of its script's end",
        "Rank 1 told nothing.",
        "Rank 2 replayed a step that was captured, which nobody can watch.",
    ]


def test_an_account_without_end_is_cut_off_and_said_to_be(
    noise_data: PreparedDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_accounts, "MAX_EXCHANGES", 3)
    lines = (Traffic("all_reduce", Site("train.py", n, ""), None, None, 1, 4) for n in range(1, 9))
    run = account(noise_data, rank(0, *lines))
    assert [one.line for one in run.exchanges] == [1, 2, 3]
    assert run.gaps == ("There are more than 3 exchanges; the others are left out.",)


def test_what_an_author_writes_for_a_test_is_an_account() -> None:
    run = RunAccount({"world_size": 4.0, "steps_of_8": 2.0})
    assert (run.world_size, run.get("steps_of_8"), run.get("steps_of_9", 0.0)) == (4, 2.0, 0.0)
    assert "wall_s" not in run
    assert run.messages == run.collectives() == ()


def test_the_documented_examination_tells_by_hand_from_a_collective(noise_data: PreparedDataset) -> None:
    page = (Path(__file__).parents[2] / "docs" / "task-authors.md").read_text(encoding="utf-8")
    (example,) = re.findall(
        r"^```python\n(from grader.model.run_account.*?)^```$", page, re.MULTILINE | re.DOTALL
    )
    module: dict[str, Any] = {}
    exec(example, module)
    examine = module["examine"]
    assert examine({}, RunAccount.silent()) == {}
    sends = [Traffic("isend", AT, None, 1 - n, 5, 1000) for n in (0, 1)]
    assert examine({}, account(noise_data, rank(0, sends[0]), rank(1, sends[1]))) == {
        "by-hand": (1.0, "The ranks sent 2,000 bytes.")
    }
    called = account(
        noise_data, rank(0, sends[0]), rank(1, sends[1], Traffic("all_reduce", AT, None, None, 1, 8))
    )
    assert examine({}, called)["by-hand"] == (0.0, "Rank 1 calls `all_reduce` at train.py:41.")
    assert examine({}, account(noise_data, rank(0, sends[0]), rank(1)))["by-hand"][0] == 0.0
    unheard = account(noise_data, rank(0, sends[0]), RankTrace(1, None, False))
    assert examine({}, unheard)["by-hand"] == (None, "Rank 1 told nothing.")
