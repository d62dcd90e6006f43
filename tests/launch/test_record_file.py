"""The record of a run is whole or not there, and a write that fails leaves nothing beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grader.launch.record import write_json


def test_a_record_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    for value in ({"a": 1}, {"b": [2]}):
        write_json(path, value)
        assert json.loads(path.read_text()) == value
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.mkdir()
    with pytest.raises(OSError, match="directory"):
        write_json(path, {"a": 1})
    assert list(tmp_path.iterdir()) == [path]
