"""All the evidence of one run, as rules look at it."""

from __future__ import annotations

from dataclasses import dataclass, field

from grader.checks.quote import places
from grader.checks.text.source import Script
from grader.checks.told.ledger import Ledger
from grader.model.calibration import Calibration
from grader.model.evaluation import Evaluation
from grader.model.finding import Location
from grader.model.run import RunRecord
from grader.model.task import Expected
from grader.model.trace import RankTrace, Trace


@dataclass(frozen=True, slots=True)
class Seen:
    """What rules may look at.

    Attributes:
        script: the parsed submission, to quote and to point at lines.
        record: seen from outside.
        trace: told by the probe.
        ledger: who saw which sample, built from the trace.
        evaluation: the trusted scorer's, None while not scored.
        profile: `cpu` or `gpu`.
        num_train, num_validation: size of the splits mounted for the script; None unknown.
        logs: rank → (stdout, stderr) as kept, safe text; empty when unknown.
        expected: what the task asks of the optimisation.
        calibration: the reference's measured times on this node class, None where there are none.
    """

    script: Script
    record: RunRecord
    trace: Trace
    ledger: Ledger
    evaluation: Evaluation | None
    profile: str
    num_train: int | None = None
    num_validation: int | None = None
    logs: tuple[tuple[str, str], ...] = ()
    expected: Expected = field(default_factory=Expected)
    calibration: Calibration | None = None

    @property
    def world_size(self) -> int:
        """Ranks that were started."""
        return self.record.world_size

    def written(self, name: str) -> tuple[Location, ...]:
        """Where the script opened or saved a file of that name in its output folder; empty where nobody told."""
        sites = []
        for rank in self.trace.ranks:
            sites += [f.site for f in rank.files if f.out and f.path.rpartition("/")[2] == name]
            sites += [s.site for s in rank.saves if s.out and s.path.rpartition("/")[2] == name]
        return places(sites)

    def rank(self, rank: int) -> RankTrace:
        """One rank's trace."""
        return self.trace.ranks[rank]
