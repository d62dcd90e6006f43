"""What a task's `examine()` is told of the run whose files it looks at: numbers that the files can be held against.

Seen from outside, or told by the probe; never taken from the files themselves.
"""

from __future__ import annotations

from grader.model.dataset import PreparedDataset
from grader.run.record_reader import read_record
from grader.run.trace_reader import read_trace
from grader.run.workspace import Workspace


def circumstances(workspace: Workspace, dataset: PreparedDataset) -> dict[str, float]:
    """Facts of one run by name.

    `world_size`, `wall_s` and `cpu_s` (slowest rank) are seen from outside. `steps` (of the rank that took most) and
    `samples` (of all ranks, in training steps) are what the probe saw; `device_bytes` the most that the allocator of
    a rank's GPU had handed out at once, 0 without a GPU. `num_train` is the size of the training split.
    """
    record = read_record(workspace.record)
    trace = read_trace([workspace.trace(rank) for rank in range(record.world_size)])
    steps = [step for rank in trace.ranks for step in rank.steps]
    peaks = [end.fields.get("peak_device_bytes") for rank in trace.ranks for end in rank.events("end")]
    return {
        "world_size": float(record.world_size),
        "wall_s": record.wall_s,
        "cpu_s": record.slowest_cpu_s,
        "steps": float(max((len(rank.steps) for rank in trace.ranks), default=0)),
        "samples": float(sum(step.samples for step in steps)),
        "device_bytes": float(max((p for p in peaks if isinstance(p, int)), default=0)),
        "num_train": float(dataset.num_train),
    }
