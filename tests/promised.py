"""The tasks' own submissions for tests: read, or written out as the file that a learner would have.

Which of them are kept as patches is no test's business.
"""

from __future__ import annotations

import functools
from pathlib import Path

from grader.catalog.submissions.promised_submissions import promises_in
from grader.model.promise import PromisedSubmission
from grader.model.submission import Submission

CHECKOUT = Path(__file__).resolve().parents[1]


@functools.cache
def promises(task: str) -> dict[str, PromisedSubmission]:
    """All submissions of a task of this checkout by name, such as `rejected/no_set_epoch`."""
    found, problems = promises_in(CHECKOUT / "tasks" / task / "submissions")
    assert not problems, problems
    return {promised.name: promised for promised in found}


def submission(task: str, name: str) -> Submission:
    """One of them."""
    return promises(task)[name].submission


def text(task: str, name: str) -> str:
    """The script of one that has a single file."""
    (file,) = submission(task, name).files
    return file.text


def script(task: str, name: str, folder: Path) -> Path:
    """The same as a file in a folder, called as in the task."""
    path = folder / f"{name.rpartition('/')[2]}.py"
    path.write_text(text(task, name), encoding="utf-8", newline="")
    return path
