"""Shared memory ran out under the data loader's workers.

## What happened
A worker was killed by a bus error, or could not make a shared memory file.

## Why
Workers hand their batches over through `/dev/shm`, which is small in containers. Every rank has its own workers:
`world_size × num_workers × prefetch_factor` batches wait there at once.

## Mend it
Fewer workers per rank, a smaller `prefetch_factor` or batch, or
`torch.multiprocessing.set_sharing_strategy("file_system")`.
"""

from __future__ import annotations

import re

from grader.checks.run.endings.failed_run import FailedRun
from grader.model.diagnosis import Diagnosis

ORDER = 12
_WORDS = re.compile(
    r"is killed by signal: Bus error|insufficient shared memory|unable to open shared memory object"
    r"|unable to (mmap|resize|allocate) .{0,60}(shared|/torch_)|unable to write to file </torch_"
    r"|received 0 items of ancdata|Too many open files|out of shared memory|/dev/shm"
)
_FILES = re.compile(r"received 0 items of ancdata|Too many open files")


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak of shared memory and of the descriptors that it needs, with the number of workers where it is known."""
    found = run.saying(_WORDS) or (
        run.logged(_WORDS) if run.cause is not None and run.cause.signal == "SIGBUS" else None
    )
    if found is None:
        return None
    workers = [max((ld.num_workers for ld in r.loaders), default=0) for r in run.evidence.trace.ranks]
    number = f" ({sum(workers)} workers on {len(workers)} ranks)" if any(workers) else ""
    what = "open files" if _FILES.search(found[0]) else "shared memory"
    return run.crash(
        title=f"The data loaders' workers ran out of {what}",
        what=f"lost a worker of the data loader because {what} ran out{number}",
        why=(
            "Workers hand batches over through `/dev/shm`, which is small in a container, and each rank brings its "
            "own workers, with `prefetch_factor` batches each"
        ),
        hint=(
            "Use fewer workers per rank (`num_workers=2`, or 0 for data that is in memory anyway), smaller batches or "
            '`prefetch_factor=1`; `torch.multiprocessing.set_sharing_strategy("file_system")` saves open files.'
        ),
        details={"workers_by_rank": workers},
    )
