"""A version of a task outlives its folder: kept here, packed for elsewhere, with the rules that its course brings."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.catalog.submissions.promised_submissions import submissions_of
from grader.catalog.tasks.kept_tasks import changed_files, keep_task, load_kept, pack_task, unpack_task
from grader.catalog.tasks.task_folders import load_task, reference
from grader.errors import InfraError, UsageError
from grader.settings import in_course, settings

RULE = (Path(__file__).parents[2] / "grader" / "checks" / "rules" / "opt007_summed_loss.py").read_text()


@pytest.fixture
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A course of one task and one rule, and a state folder of this test's own."""
    made = tmp_path / "tasks"
    shutil.copytree(settings().tasks_dir / "ddp-toy", made / "ddp-toy")
    shutil.copytree(settings().skeletons_dir / "ddp-toy", tmp_path / "skeletons" / "ddp-toy")
    (made / "rules").mkdir()
    (made / "rules" / "own001_a_rule.py").write_text(RULE)
    toml = made / "ddp-toy" / "task.toml"
    toml.write_text(toml.read_text().replace('"DATA005", ', '"DATA005", "OWN001", ', 1))
    monkeypatch.setenv("GRADER_STATE_DIR", str(tmp_path / "state"))
    settings.cache_clear()
    yield made
    settings.cache_clear()


def test_a_kept_version_is_loaded_whatever_becomes_of_the_folder(tasks: Path) -> None:
    with in_course(tasks):
        before = load_task("ddp-toy")
        keep_task(before)
        (tasks / "ddp-toy" / "statement.md").write_text("Something else.\n")
        after = load_task("ddp-toy")
        assert after.version != before.version
        assert changed_files(before, after) == (), "both are read from the one folder"
        kept = load_task("ddp-toy", before.version)
        assert changed_files(kept, after) == ("statement.md",)
        with pytest.raises(UsageError, match="never kept here"):
            load_task("ddp-toy", "0" * 64)
    shutil.rmtree(tasks)
    kept = load_task("ddp-toy", before.version)
    assert (kept.version, kept.statement) == (before.version, before.statement)
    # What times are held against came along, and nothing else that only proves the task.
    assert reference(kept).submission.files
    assert {one.verdict for one in submissions_of(kept)} == {"accepted"}


def test_a_packed_version_is_the_same_elsewhere(tasks: Path) -> None:
    with in_course(tasks):
        task = load_task("ddp-toy")
        packed = pack_task(task)
        assert packed == pack_task(task), "the same bytes"
    assert load_kept("ddp-toy", task.version) is None
    unpacked = unpack_task("ddp-toy", task.version, packed)
    assert unpacked.version == task.version
    assert "OWN001" in unpacked.checks, "the course's own rule is known, though this course has none"
    with pytest.raises(InfraError, match="not those of version 1111"):
        unpack_task("ddp-toy", "1" * 64, packed)
    with pytest.raises(InfraError, match="cannot be unpacked"):
        unpack_task("ddp-toy", "2" * 64, packed[: len(packed) // 2])


def test_a_changed_rule_is_another_version_and_a_damaged_copy_is_none(tasks: Path) -> None:
    with in_course(tasks):
        before = load_task("ddp-toy")
        keep_task(before)
        rule = tasks / "rules" / "own001_a_rule.py"
        rule.write_text(rule.read_text() + "\n# Other words.\n")
        assert load_task("ddp-toy").version != before.version
    kept = load_kept("ddp-toy", before.version)
    assert kept is not None
    (kept.folder / "statement.md").write_text("Whoever wrote this?\n")
    assert load_kept("ddp-toy", before.version) is None
