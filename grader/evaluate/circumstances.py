"""What a task's `examine()` is told of the run whose files it looks at: numbers that the files can be held against.

Seen from outside, or told by the probe; never taken from the files themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from statistics import fmean

from grader.checks.run.optimisation.step_times import StepTime, every_step_time
from grader.model.dataset import PreparedDataset
from grader.model.run import RunRecord
from grader.model.trace import Trace

_NUM_SIZES = 64


def circumstances(record: RunRecord, trace: Trace, dataset: PreparedDataset) -> dict[str, float]:
    """Facts of one run by name.

    `world_size`, `wall_s` and `cpu_s` (slowest rank) are seen from outside. `steps` (of the rank that took most) and
    `samples` (of all ranks, in training steps) are what the probe saw; `device_bytes` the most that the allocator of
    a rank's GPU had handed out at once, 0 without a GPU. `num_train` is the size of the training split.

    For each number B of samples that steps had, for the 64 most common ones: `steps_of_<B>` is how many steps had it,
    of all ranks; `step_s_of_<B>` is what one took by the probe's clock, from the step before to it and without
    evaluation, on average over all and `quick_step_s_of_<B>` over all but the slowest quarter, which may have been the
    first.
    """
    steps = [step for rank in trace.ranks for step in rank.steps]
    peaks = [end.fields.get("peak_device_bytes") for rank in trace.ranks for end in rank.events("end")]
    return by_batch_size(one for rank in trace.ranks for one in every_step_time(rank)) | {
        "world_size": float(record.world_size),
        "wall_s": record.wall_s,
        "cpu_s": record.slowest_cpu_s,
        "steps": float(max((len(rank.steps) for rank in trace.ranks), default=0)),
        "samples": float(sum(step.samples for step in steps)),
        "device_bytes": float(max((p for p in peaks if isinstance(p, int)), default=0)),
        "num_train": float(dataset.num_train),
    }


def by_batch_size(times: Iterable[StepTime]) -> dict[str, float]:
    """Number and seconds of steps by their number of samples, as `circumstances` names them."""
    took: dict[int, list[float]] = defaultdict(list)
    for one in times:
        if one.step.samples:
            took[one.step.samples].append(one.seconds)
    found: dict[str, float] = {}
    for size in sorted(took, key=lambda size: (-len(took[size]), size))[:_NUM_SIZES]:
        seconds = sorted(took[size])
        found[f"steps_of_{size}"] = float(len(seconds))
        found[f"step_s_of_{size}"] = fmean(seconds)
        found[f"quick_step_s_of_{size}"] = fmean(seconds[: -(-3 * len(seconds) // 4)])
    return found
