"""Everything one judging produced, as the reports read it."""

from __future__ import annotations

from dataclasses import dataclass

from grader.checks.evidence import Evidence, SourceEvidence
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
        task: what it was judged by.
        evidence: what it was judged on; its parts below are None or empty where the submission does not parse.
        grade: the outcome.
        coverage: per epoch, per rank: sample indices seen in training, for the coverage plot; empty when unknown.
    """

    task: Task
    evidence: Evidence | SourceEvidence
    grade: Grade
    coverage: tuple[tuple[tuple[int, ...], ...], ...] = ()

    @property
    def submission(self) -> Submission:
        """What was judged."""
        return self.evidence.facts.submission

    @property
    def record(self) -> RunRecord | None:
        """The run as seen from outside."""
        return self.evidence.record if isinstance(self.evidence, Evidence) else None

    @property
    def trace(self) -> Trace | None:
        """The run as the probe saw it."""
        return self.evidence.trace if isinstance(self.evidence, Evidence) else None

    @property
    def evaluation(self) -> Evaluation | None:
        """The scorer's result, None where nothing was scored."""
        return self.evidence.evaluation if isinstance(self.evidence, Evidence) else None

    @property
    def calibration(self) -> Calibration | None:
        """What time was held against, None if there was none."""
        return self.evidence.calibration if isinstance(self.evidence, Evidence) else None

    @property
    def logs(self) -> tuple[tuple[str, str], ...]:
        """Rank → (stdout, stderr) as kept, safe text."""
        return self.evidence.logs if isinstance(self.evidence, Evidence) else ()
