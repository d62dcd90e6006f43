"""What a task's own submissions promise, as written in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.catalog.submissions.promised_submissions import submissions_of
from grader.catalog.tasks.task_folders import load_task
from grader.errors import TaskError
from grader.model.finding import Location

FLAWED = """\
#!/usr/bin/env python
# expect: DATA002 DATA001
\"\"\"A docstring with

# expect: DATA005
\"\"\"
loader = 1  # <- DATA001
for epoch in range(3):  # <- DATA002
    pass
"""


def test_verdict_codes_and_markers(task_folder: Path) -> None:
    rejected = task_folder / "submissions" / "rejected"
    rejected.mkdir()
    (rejected / "flawed.py").write_text(FLAWED)
    (rejected / "folder").mkdir()
    (rejected / "folder" / "train.py").write_text("# expect: DATA003\nimport net\n")
    (rejected / "folder" / "net.py").write_text("x = 1\ny = 2  # <- DATA003\n")
    clean, flawed, folder = submissions_of(load_task("two-ranks"))
    assert (clean.name, clean.verdict, clean.codes, clean.markers) == ("accepted/plain", "accepted", (), ())
    assert (flawed.name, flawed.verdict, flawed.codes) == (
        "rejected/flawed",
        "rejected",
        ("DATA001", "DATA002"),
    )
    assert [(m.code, m.where) for m in flawed.markers] == [
        ("DATA001", Location("train.py", 7)),
        ("DATA002", Location("train.py", 8)),
    ]
    assert folder.path == rejected / "folder"
    assert [(m.code, m.where) for m in folder.markers] == [("DATA003", Location("net.py", 2))]


def test_all_that_cannot_be_kept_is_told_at_once(task_folder: Path) -> None:
    task = load_task("two-ranks")
    accepted = task_folder / "submissions" / "accepted"
    (accepted / "unknown.py").write_text("# expect: DATA001 NOPE123\nx = 1\n")
    (accepted / "words.py").write_text("# points: many\nx = 1\n")
    (accepted / "backwards.py").write_text("# points: 50-40\nx = 1\n")
    (accepted / "stray.py").write_text("x = 1  # <- DATA001\n")
    (accepted / "empty.py").write_text("")
    (accepted / "plain").mkdir()
    (accepted / "plain" / "train.py").write_text("x = 1\n")
    with pytest.raises(TaskError) as caught:
        submissions_of(task)
    text = str(caught.value)
    assert "unknown.py: there is no rule 'NOPE123'" in text
    assert "stray.py: marks a line with DATA001; write `# expect: DATA001`" in text
    assert "empty.py" in text
    assert "words.py: `# points: many` is no promise" in text
    assert "backwards.py: `# points: 50-40` can't be kept" in text
    assert "submissions/accepted/plain: stands for two submissions" in text


@pytest.mark.parametrize(
    ("line", "points"),
    [("# points: 45", (45, 45)), ("# points: 40-50.5", (40, 50.5)), ("# no promise", None)],
)
def test_promised_points(task_folder: Path, line: str, points: tuple[float, float] | None) -> None:
    (task_folder / "submissions" / "accepted" / "plain.py").write_text(f"{line}\nx = 1  # points: 7\n")
    (promised,) = submissions_of(load_task("two-ranks"))
    assert promised.points == points
