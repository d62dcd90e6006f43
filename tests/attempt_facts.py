"""What was to be judged, for tests that make up the evidence themselves."""

from __future__ import annotations

from typing import Any

from grader.model.attempt_facts import AttemptFacts
from grader.model.submission import SourceFile, Submission


def attempt_facts(submission: Submission | str = "", **changes: Any) -> AttemptFacts:
    """Facts of an attempt at a submission, or at a script of this text."""
    if isinstance(submission, str):
        submission = Submission("a submission", (SourceFile("train.py", submission),))
    fields: dict[str, Any] = {
        "attempt": "an-attempt",
        "task": "tiny",
        "task_version": "1" * 64,
        "profile": "cpu",
        "nproc_per_node": 2,
        "runtime": "process",
        "launcher": "fork",
        "seed": 0,
        "dataset": "noise",
        "num_train": 100,
        "num_validation": 50,
        "num_hidden": 100,
    }
    return AttemptFacts(submission=submission, **{**fields, **changes})
