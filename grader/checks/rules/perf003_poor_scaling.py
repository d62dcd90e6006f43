"""Several ranks are no faster than one.

## What it finds
A run on k ranks that trains no faster than the starting script does on one device of the same kind of machine; epochs
of which each is k passes over the training split.

## Why it matters
Speed is what the other devices are there for. If k of them bring what one could do, they wait: for data, for each
other, or because every rank does the whole work.

## Example
```python
from torch.utils.data import DataLoader

loader = DataLoader(train_set, batch_size=64, shuffle=True)  # the whole set, on every rank
```

## Use instead
```python
from torch.utils.data import DataLoader, DistributedSampler

loader = DataLoader(train_set, batch_size=64, sampler=DistributedSampler(train_set))
```

## How it is seen
From outside, by the kernel's count of processor time of the slowest rank, against the calibrated run of the starting
script on one rank, each per sample that was trained on; on GPUs by wall time. Machines differ from hour to hour, so
it is said only where the difference is plain and other work did not keep the machine busy, and it never costs points
by itself. Epochs of k passes are seen by what the ranks drew and by what the script reports, where the text counts
the steps of an epoch over the whole set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.checks.phrases import count
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.model.finding import EvidenceKind, Severity
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.HINT
NEEDS = Precondition.GROUP
CLOCKED = True
EXPLAINED_BY = ("DATA001", "GRAD003", "PERF001", "PERF002")
_NO_FASTER = 1.1
"""Speed-up below which several ranks count as no faster; two ranks reach about 1.75 here."""


def check_run(evidence: Evidence) -> Observation:
    """Compare the run's time with one rank's."""
    from grader.checks.run.metrics.repeated_passes import repeated_passes
    from grader.model.run import Ending

    calibration = evidence.calibration
    ranks = len(evidence.trace.trainers)
    if evidence.record.ending is not Ending.COMPLETED:
        return not_observable("The run did not come to its end.")
    if ranks < 2:
        return not_observable("Fewer than two ranks trained.")
    if (again := repeated_passes(evidence)) is not None:
        return flagged(again)
    if evidence.record.launcher == "torchrun":
        return not_observable(
            "The ranks started cold: starting Python and importing costs each of them what it costs one alone."
        )
    if unseen := evidence.unseen("PERF003"):
        return not_observable(unseen)
    if not evidence.ledger.training:
        return not_observable("How many samples were trained on is not known.")
    samples = sum(step.samples for rank in evidence.trace.trainers for step in rank.steps)
    if calibration is None or not calibration.one_rank_s or not calibration.one_rank_samples or not samples:
        return not_observable("The starting script's time on one rank has not been measured on this machine.")
    on_gpu = evidence.profile != "cpu"
    took_s = evidence.record.wall_s if on_gpu else evidence.record.slowest_cpu_s
    # Runs differ in how much they train on: what counts is the time per sample.
    speed_up = calibration.one_rank_s / calibration.one_rank_samples * samples / took_s if took_s > 0 else 0.0
    clock = "seconds" if on_gpu else "seconds of processor time on the slowest rank"
    told = (
        f"{took_s:.1f} {clock} for {count(samples, 'sample')}, against {calibration.one_rank_s:.1f} for "
        f"{calibration.one_rank_samples:,} of the starting script on one"
    )
    if speed_up >= _NO_FASTER:
        return verified(
            f"{ranks} ranks took {told}: {speed_up:.2f} × as fast per sample.", EvidenceKind.OUTSIDE
        )
    if evidence.record.disturbed:
        return not_observable(
            "The machine was busy with other work while this ran: its time says nothing here."
        )
    return flagged(
        Hit(
            message=f"{ranks} ranks took {told}: {speed_up:.2f} × as fast per sample, where up to {ranks} × is "
            "there to be had. The further devices bring nothing.",
            hint="See what ranks do instead of training: whole passes over the data on every rank, waiting for input, "
            "collectives in every step, validation by one rank while the others wait.",
            details={"seconds": took_s, "one_rank_s": calibration.one_rank_s, "speed_up": round(speed_up, 3)},
            evidence=EvidenceKind.OUTSIDE,
        )
    )
