"""The folder of one attempt: what lies where. Running fills it, judging reads it, reports are written into it.

Knows names, not meanings: parsing is done by the readers beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Workspace:
    """Paths of one attempt below `root`; `scored_by`: the version of the task by which it was scored anew, "": none.

    `submission/`, `attempt.json` go in; `record.json`, `trace/rank<r>.trace`, `logs/rank<r>.out`, `logs/rank<r>.err`,
    `stacks/rank<r>.<n>.txt`, `outputs/` come from the run; `evaluation.json` from the scorer; `calibration.json` is the
    snapshot time was held against; `grade.json`, `report.html` are written last.
    """

    root: Path
    scored_by: str = ""

    @property
    def submission(self) -> Path:
        """The submission's files, laid out."""
        return self.root / "submission"

    @property
    def outputs(self) -> Path:
        """What the script left in $OUTPUT_DIR."""
        return self.root / "outputs"

    @property
    def attempt(self) -> Path:
        """What was to be judged, how: JSON."""
        return self.root / "attempt.json"

    @property
    def record(self) -> Path:
        """Outside evidence: JSON."""
        return self.root / "record.json"

    def node_record(self, node: int) -> Path:
        """Outside evidence of one node where there are several: JSON; `record` is made of them."""
        return self.root / f"record.node{node}.json"

    @property
    def evaluation(self) -> Path:
        """The scorer's result: JSON."""
        return self.root / (f"evaluation-{self.scored_by[:12]}.json" if self.scored_by else "evaluation.json")

    @property
    def calibration(self) -> Path:
        """Snapshot of the calibration used: JSON; absent if there was none."""
        return self.root / "calibration.json"

    @property
    def grade(self) -> Path:
        """The grade: JSON, schema 1."""
        return self.root / "grade.json"

    @property
    def report(self) -> Path:
        """The self-contained HTML report."""
        return self.root / "report.html"

    @property
    def num_repeats(self) -> int:
        """Repeated runs so far (made where the first missed the time target narrowly)."""
        return len(list((self.root / "repeats").glob("*/record.json")))

    def repeat(self, number: int) -> Workspace:
        """The workspace of a repeated run, counted from 0."""
        return Workspace(self.root / "repeats" / str(number))

    @property
    def second_look(self) -> Workspace:
        """The workspace of a run that was only made to see which line is to blame; absent where none was needed."""
        return Workspace(self.root / "second_look")

    def trace(self, rank: int) -> Path:
        """Stamped probe lines of one rank."""
        return self.root / "trace" / f"rank{rank}.trace"

    def log(self, rank: int, stream: str) -> Path:
        """Kept output of one rank; `stream` is `out` or `err`."""
        return self.root / "logs" / f"rank{rank}.{stream}"

    def stack(self, rank: int, dump: int) -> Path:
        """The nth stack dump of one rank."""
        return self.root / "stacks" / f"rank{rank}.{dump}.txt"
