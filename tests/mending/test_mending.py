"""Literal mending itself: what is written for certain is made, an edit is applied, and the word says which it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.model.submission import SourceFile, Submission
from grader.pipeline import Pipeline
from tests.mending.__main__ import EDITS
from tests.mending.harness import mend, read_cases, with_edit
from tests.promised import CHECKOUT

REJECTED = CHECKOUT / "tasks" / "ddp-toy" / "submissions" / "rejected"
OUTCOMES = {"bypasses_wrapper": "fixes", "never_wrapped": "words", "trains_on_rank_zero": "no words"}


@pytest.mark.slow
def test_scripts_of_our_own_are_mended_as_their_reports_say(tmp_path: Path) -> None:
    cases = [case for case in read_cases(REJECTED, None) if case.name in OUTCOMES]
    with Pipeline("process") as pipeline:
        found = [mend(case, pipeline, EDITS, tmp_path) for case in cases]
    assert {one.name: one.outcome for one in found} == OUTCOMES
    assert {one.name: one.left for one in found} == dict.fromkeys(OUTCOMES, ())
    assert all(one.first for one in found)


def test_a_manifest_says_which_task_a_script_is_for(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("x = 1\n", encoding="utf-8")
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "train.py").write_text("x = 2\n", encoding="utf-8")
    (tmp_path / "manifest.jsonl").write_text('{"case": "two", "task": "ddp-toy"}\n', encoding="utf-8")
    assert [(case.name, case.task) for case in read_cases(tmp_path, None)] == [("two", "ddp-toy")]
    assert [(case.name, case.task) for case in read_cases(tmp_path, "fsdp")] == [
        ("one", "fsdp"),
        ("two", "fsdp"),
    ]


def test_an_edit_may_change_several_files_and_finds_its_lines_where_fixes_moved_them() -> None:
    files = (SourceFile("train.py", "import os\nx = 1\n"), SourceFile("net.py", "y = 2\n"))
    diffs = {"train.py": "-x = 1\n+x = 3\n", "net.py": "-y = 2\n+y = 4\n"}
    edit = "".join(f"--- {path}\n+++ {path}\n@@ -1 +1 @@\n{lines}" for path, lines in diffs.items())
    after = with_edit(Submission("mine", files), edit)
    assert [file.text for file in after.files] == ["import os\nx = 3\n", "y = 4\n"]
