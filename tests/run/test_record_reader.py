"""A record that was damaged on its way must not decide anything."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grader.errors import InfraError
from grader.model.run import Ending, Frame, Waiting
from grader.run.record_reader import read_record

FRAME = {"path": "train.py", "line": 3, "function": "main", "in_submission": True}
RANK = {
    "rank": 0,
    "exit_code": None,
    "killed_by_judge": True,
    "started_s": 0,
    "ended_s": 15.5,
    "cpu_user_s": 1.5,
    "cpu_system_s": 0.5,
    "peak_rss_bytes": 1,
    "stdout_bytes": 2,
    "stderr_bytes": 3,
    "stdout_lines": 4,
    "output_cut": False,
    "trace_bytes": 5,
    "trace_cut": False,
    "waiting": {"frames": [FRAME], "operation": "barrier", "site": FRAME},
    "failure": None,
    "leftovers": 0,
}
RECORD: dict[str, Any] = {
    "runtime": "process",
    "launcher": "fork",
    "isolated": False,
    "world_size": 1,
    "ending": "deadlocked",
    "ending_reason": "why",
    "wall_s": 15.5,
    "deadline_s": 60,
    "ranks": [RANK],
    "outputs": [{"path": "model.pt", "size_bytes": 7, "mtime_s": 1.5}],
    "phases_s": {"prepare": 0.5},
    "environment": {"torch": "2.6", "anything": [1, None]},
    "loopback_bytes": None,
}


def test_a_whole_record_is_read_field_for_field(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_text(json.dumps(RECORD))
    record = read_record(path)
    assert record.ending is Ending.DEADLOCKED
    assert record.slowest_cpu_s == 2.0
    frame = Frame("train.py", 3, "main", True)
    assert record.ranks[0].waiting == Waiting((frame,), "barrier", frame)
    assert record.outputs[0].path == "model.pt"
    assert isinstance(record.deadline_s, float)
    assert record.environment["anything"] == [1, None]


DAMAGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a field is missing": lambda record: record.pop("wall_s"),
    "a field too many": lambda record: record.update(verdict="accepted"),
    "a word for a number": lambda record: record.update(wall_s="fast"),
    "no such ending": lambda record: record.update(ending="fine"),
    "a truth value for a count": lambda record: record.update(world_size=True),
    "a rank is missing": lambda record: record.update(ranks=[]),
    "not a number": lambda record: record.update(wall_s=float("nan")),
    "ranks are no list": lambda record: record.update(ranks={"0": RANK}),
    "a rank without its fields": lambda record: record.update(ranks=[{"rank": 0}]),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_record_is_our_fault(tmp_path: Path, damage: str) -> None:
    record = json.loads(json.dumps(RECORD))
    DAMAGES[damage](record)
    path = tmp_path / "record.json"
    path.write_text(json.dumps(record))
    with pytest.raises(InfraError, match="damaged"):
        read_record(path)


def test_a_record_from_before_a_field_was_added_is_still_read(tmp_path: Path) -> None:
    record = json.loads(json.dumps(RECORD))
    for rank in record["ranks"]:
        rank.pop("node", None)
    path = tmp_path / "record.json"
    path.write_text(json.dumps(record))
    assert [rank.node for rank in read_record(path).ranks] == [0] * len(record["ranks"])


@pytest.mark.parametrize("text", ["", "{", "[]", '{"wall_s": 1e999}', "[" * 100_000])
def test_a_file_that_is_no_record_is_our_fault(tmp_path: Path, text: str) -> None:
    path = tmp_path / "record.json"
    path.write_text(text)
    with pytest.raises(InfraError, match="damaged"):
        read_record(path)


def test_a_missing_record_is_our_fault(tmp_path: Path) -> None:
    with pytest.raises(InfraError, match="no record"):
        read_record(tmp_path / "record.json")
