"""Everything one judging produced, as the reports read it."""

from __future__ import annotations

from dataclasses import dataclass

from grader.model.calibration import Calibration
from grader.model.evaluation import Evaluation
from grader.model.grade import Grade
from grader.model.run import RunRecord
from grader.model.submission import Submission
from grader.model.task import Task
from grader.model.trace import Trace


@dataclass(frozen=True, slots=True)
class Attempt:
    """One judging of one submission at one task version.

    Attributes:
        task, submission: what was judged.
        record, trace, evaluation: the evidence; None where nothing was run (the submission does not parse).
        calibration: what time was held against, None if there was none.
        grade: the outcome.
        logs: rank → (stdout, stderr) as kept, safe text.
        coverage: per epoch, per rank: sample indices seen in training, for the coverage plot; empty when unknown.
    """

    task: Task
    submission: Submission
    grade: Grade
    record: RunRecord | None = None
    trace: Trace | None = None
    evaluation: Evaluation | None = None
    calibration: Calibration | None = None
    logs: tuple[tuple[str, str], ...] = ()
    coverage: tuple[tuple[tuple[int, ...], ...], ...] = ()
