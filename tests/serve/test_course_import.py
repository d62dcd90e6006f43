"""Courses come into a service by command and by page, once and again: what came newer waits until staff take it."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grader import cli
from grader.settings import settings
from grader.store import schema
from grader.store.courses import courses
from grader.store.courses.courses import AssignedTask, CourseFacts
from grader.store.courses.task_versions import is_kept, task_at
from grader.store.database import Store
from grader.store.files import FolderFiles

COURSE = """name = "mine"
title = "Mine"
about = "From elsewhere."
"""
TASK = """
[[tasks]]
task = "{name}"
weight = {weight}
due = "14d"
"""


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A course of one task, skeletons beside the folder of tasks."""
    made = tmp_path / "elsewhere"
    _add_toy(made, "toy")
    (made / "tasks" / "course.toml").write_text(COURSE + TASK.format(name="toy", weight=100))
    return made


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A service's database, of this process's settings, without any folder of tasks."""
    (tmp_path / "none").mkdir()
    monkeypatch.setenv("GRADER_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("GRADER_TASKS_DIR", str(tmp_path / "none"))
    (tmp_path / "state").mkdir()
    settings.cache_clear()
    made = Store(settings().database)
    schema.upgrade(made)
    yield made
    made.close()
    settings.cache_clear()


def _add_toy(folder: Path, name: str) -> None:
    built_in = Path(__file__).parents[2]
    left_out = shutil.ignore_patterns("rejected", "crashed", "deadlocked")
    shutil.copytree(built_in / "tasks" / "ddp-toy", folder / "tasks" / name, ignore=left_out)
    shutil.copytree(built_in / "skeletons" / "ddp-toy", folder / "skeletons" / name)


def brought(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> Any:
    assert cli.main(["course", "import", *map(str, arguments), "--json"]) == code
    said = capsys.readouterr()
    return said.err if code else json.loads(said.out)


def held(store: Store, name: str = "mine") -> tuple[CourseFacts, tuple[AssignedTask, ...]]:
    (found,) = (one for one in courses.courses(store) if one.name == name)
    return found, courses.tasks_of(store, found.id)


def test_a_course_is_served_without_its_folder_and_its_newer_state_waits(
    course: Path, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = brought(capsys, course, "--begins", "2027-03-01")
    assert (told["new"], told["set"]) == (True, ["toy"])
    facts, (toy,) = held(store)
    assert facts.source == str(course)
    assert facts.about == "From elsewhere."
    assert toy.terms.due_at is not None
    assert toy.terms.due_at.isoformat() == "2027-03-15T00:00:00+00:00"
    first = toy.terms.version
    assert brought(capsys, course)["same"] == ["toy"]

    toml = course / "tasks" / "toy" / "task.toml"
    toml.write_text(toml.read_text().replace("wall_s = 120", "wall_s = 110"))
    _add_toy(course, "more")
    (course / "tasks" / "course.toml").write_text(
        COURSE + TASK.format(name="toy", weight=60) + TASK.format(name="more", weight=40)
    )
    told = brought(capsys, course)
    assert (told["new"], told["offered"], told["added"]) == (False, ["toy"], ["more"])
    _, (toy, more) = held(store)
    assert (toy.terms.version, toy.terms.weight) == (first, 100), (
        "nothing is in force, and terms are the staff's"
    )
    assert toy.offered_version not in (None, first)
    assert more.draft
    shutil.rmtree(course)
    files = FolderFiles(settings().state_dir / "files")
    for version in (first, toy.offered_version):
        assert version is not None
        assert is_kept(store, version)
        assert task_at(store, files, "toy", version).version == version


def test_what_is_no_good_course_is_refused_whole(
    course: Path, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    toml = course / "tasks" / "toy" / "task.toml"
    good = toml.read_text()
    toml.write_text(good.replace("nproc_per_node", "nproc"))
    assert "task.toml" in brought(capsys, course, code=3)
    toml.write_text(good)
    (course / "tasks" / "rules").mkdir()
    rule = course / "tasks" / "rules" / "own001_broken.py"
    rule.write_text("def check_source(script):\n    return\n  nonsense\n")
    assert "own001_broken.py" in brought(capsys, course, code=3)
    shutil.rmtree(rule.parent)
    assert "no folder, no archive" in brought(capsys, course / "none", code=2)
    assert courses.courses(store) == ()
    courses.add_course(store, "mine", "By hand")
    assert "came from nowhere else" in brought(capsys, course, code=2)
    assert brought(capsys, course, "--name", "ours")["course"] == "ours"


def test_an_archive_says_what_it_was(
    course: Path, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packed = tmp_path / "mine.tar.gz"
    with tarfile.open(packed, "w:gz") as archive:
        archive.add(course, "mine-1.0")
    assert "mine.tar.gz, SHA-256 " in brought(capsys, packed)["from"]
    packed.write_bytes(io.BytesIO(packed.read_bytes()).getvalue()[:500])
    assert "damaged" in brought(capsys, packed, code=2)
