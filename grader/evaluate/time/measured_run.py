"""One completed run of a task's own submission, as it was measured for a calibration."""

from __future__ import annotations

from typing import NamedTuple

from grader.errors import InfraError
from grader.evaluate.files.measurement_files import read_stored
from grader.evaluate.time.throughput import samples_per_s
from grader.model.evaluation import Evaluation
from grader.model.run import Ending
from grader.model.task import Profile
from grader.run.record_reader import read_record
from grader.run.trace_reader import read_trace
from grader.run.workspace import Workspace


class MeasuredRun(NamedTuple):
    """CPU seconds of the slowest rank, wall seconds, what was measured on the hidden split by name, samples/s.

    `scores` is empty where the task scores no network; `num_samples` counts what all ranks trained on; `disturbed` is
    True where other processes left the ranks too little of the machine.
    """

    cpu_s: float
    wall_s: float
    scores: dict[str, float]
    samples_per_s: float | None
    num_samples: int = 0
    disturbed: bool = False

    def seconds(self, profile: Profile) -> float:
        """What counts, as `timing.measured_s` has it for the runs that are held against this one."""
        return self.cpu_s if profile.backend == "gloo" else self.wall_s


def read_measured(workspace: Workspace, *, in_rows: bool) -> MeasuredRun:
    """Read what a run left; `in_rows` as in `samples_per_s`.

    Raises:
        InfraError: it did not come to its end, or left nothing to score; says which.
    """
    record = read_record(workspace.record)
    evaluation = read_stored(workspace.evaluation, Evaluation)
    if record.ending is not Ending.COMPLETED:
        raise InfraError(record.ending_reason)
    if evaluation is None or evaluation.problem is not None:
        raise InfraError("it left no weights to score")
    trace = read_trace([workspace.trace(rank) for rank in range(record.world_size)])
    return MeasuredRun(
        record.slowest_cpu_s,
        record.wall_s,
        evaluation.hidden,
        samples_per_s(trace, in_rows=in_rows),
        sum(step.samples for rank in trace.ranks for step in rank.steps),
        disturbed=record.disturbed,
    )
