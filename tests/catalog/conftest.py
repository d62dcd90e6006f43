"""A small task folder of its own and settings that point into a temporary folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.settings import settings

TASK_TOML = """\
title = "Two ranks"
lab = "Lab 0"
summary = "Train on two ranks."
reference = "accepted/plain.py"

[limits]
wall_s = 60
memory_mib = 1024

[data]
datasets = ["digits"]

[profiles.cpu]
backend = "gloo"

[profiles.gpu]
backend = "nccl"
nproc_per_node = 4

[profiles.gpu.limits]
wall_s = 600

[targets.accuracy]
at_least = { digits = 0.9 }

[targets.time]
factor = 1.35

[checks]
must = ["DATA002"]

[[rubric]]
id = "accuracy"
title = "It learns"
points = 60
must = true
metric = "accuracy"
partial = [{ of_target = 0.8, share = 0.25 }, { of_target = 0.9, share = 0.5 }]

[[rubric]]
id = "partition"
title = "Every sample once"
points = 30
requires = ["DATA001", "DATA003"]

[[rubric]]
id = "time"
title = "In time"
points = 10
metric = "time"
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with tasks, skeletons and state of its own, which the settings point to."""
    for name in ("tasks", "skeletons", "state"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(f"GRADER_{name.upper()}_DIR", str(tmp_path / name))
    monkeypatch.delenv("GRADER_DATA_DIR", raising=False)
    settings.cache_clear()
    yield tmp_path
    settings.cache_clear()


@pytest.fixture
def task_folder(home: Path) -> Path:
    """A whole task named `two-ranks`."""
    folder, skeleton = home / "tasks" / "two-ranks", home / "skeletons" / "two-ranks"
    (folder / "submissions" / "accepted").mkdir(parents=True)
    skeleton.mkdir()
    (folder / "task.toml").write_text(TASK_TOML)
    (folder / "statement.md").write_text("# Two ranks\n")
    (folder / "evaluate.py").write_text("def build_model(): ...\ndef evaluate(model, images, labels): ...\n")
    (folder / "submissions" / "accepted" / "plain.py").write_text("print('hello')\n")
    (skeleton / "train.py").write_text("print('start')\n")
    return folder
