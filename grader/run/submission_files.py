"""A submission's files as a folder of ours: what the judge keeps, and what a rank of `process` starts in."""

from __future__ import annotations

import shutil
from pathlib import Path

from grader.model.submission import Submission


def write_submission(submission: Submission, folder: Path) -> None:
    """Write all files below a folder; their names were checked when the submission was read."""
    for file in submission.files:
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text, encoding="utf-8", newline="")


def make_empty(folder: Path) -> None:
    """A folder that is there and empty, whatever was there before."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
