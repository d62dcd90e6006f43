"""Kept outcomes: found again for the same facts only, and a damaged or foreign entry is none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from grader import outcomes
from grader.model.verify_case import VerifyCase
from grader.settings import settings

FACTS: dict[str, object] = {
    **outcomes.world(),
    "task": "t",
    "digest": "abc",
    "nproc_per_node": 2,
    "timed": True,
}
CASE = VerifyCase("t", "rejected/a.py", "rejected", "rejected", ("DATA002",), ("DATA002",), 4.5, "", ok=True)


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("GRADER_STATE_DIR", str(tmp_path))
    settings.cache_clear()
    yield tmp_path / "outcomes"
    settings.cache_clear()


def test_it_is_found_again_and_says_that_nothing_was_run() -> None:
    assert outcomes.recall(FACTS) is None
    outcomes.remember(FACTS, CASE)
    assert outcomes.recall(dict(reversed(FACTS.items()))) == replace(CASE, cached=True, seconds=0.0)


@pytest.mark.parametrize("name", sorted(FACTS))
def test_any_other_fact_is_another_outcome(name: str) -> None:
    outcomes.remember(FACTS, CASE)
    assert outcomes.recall({**FACTS, name: "other"}) is None
    assert outcomes.recall({k: v for k, v in FACTS.items() if k != name}) is None


def test_the_world_names_what_decides_everywhere() -> None:
    assert set(outcomes.world()) == {"code", "packages", "python", "node_class"}
    assert all(outcomes.world().values())


def test_only_kept_promises_are_kept(kept: Path) -> None:
    outcomes.remember(FACTS, replace(CASE, ok=False, message="verdict accepted, promised rejected"))
    assert not kept.exists()


def entry(kept: Path) -> Path:
    outcomes.remember(FACTS, CASE)
    (path,) = kept.iterdir()
    assert path.suffix == ".json"
    return path


@pytest.mark.parametrize(
    "text",
    ["", "{", "null", "[]", "7", '{"schema": 1}', '{"schema": 1, "facts": {}}', "[" * 100_000, "\0\xff"],
)
def test_a_damaged_entry_is_no_entry(text: str, kept: Path) -> None:
    path = entry(kept)
    path.write_text(text, encoding="latin-1")
    assert outcomes.recall(FACTS) is None
    outcomes.remember(FACTS, CASE)
    assert outcomes.recall(FACTS) is not None, "the next run mends it"


@pytest.mark.parametrize(
    "change",
    [
        {"schema": 2},
        {"facts": {"digest": "0"}},
        {"case": {"ok": False}},
        {"case": {"ok": "yes"}},
        {"case": {"verdict": 3}},
        {"case": {"codes": [1]}},
        {"case": {"codes": "DATA002"}},
        {"case": {"surprise": 1}},
    ],
)
def test_an_entry_that_was_tampered_with_is_no_entry(change: dict[str, object], kept: Path) -> None:
    path = entry(kept)
    whole = json.loads(path.read_text())
    for name, value in change.items():
        whole[name] = {**whole[name], **value} if isinstance(value, dict) else value
    path.write_text(json.dumps(whole))
    assert outcomes.recall(FACTS) is None


def test_a_folder_or_a_file_in_its_place_harms_nobody(kept: Path) -> None:
    path = entry(kept)
    path.unlink()
    path.mkdir()
    assert outcomes.recall(FACTS) is None
    outcomes.remember(FACTS, CASE)
    assert list(kept.iterdir()) == [path], "no half-written file is left"
    path.rmdir()
    kept.rmdir()
    kept.write_text("")
    outcomes.remember(FACTS, CASE)
    assert outcomes.recall(FACTS) is None
