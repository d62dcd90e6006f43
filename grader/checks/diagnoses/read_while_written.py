"""A rank read another rank's file before that was there.

## What happened
Each rank writes a file of its own, one of them reads them all, and found one missing, empty or half written.

## Why
Nothing makes the reader wait: ranks come to a line at different times, and the file of a slower one is not written yet.

## Mend it
`dist.barrier()` on every rank, between the write and the read; or no files at all: `dist.all_gather_object`.
"""

from __future__ import annotations

from grader.checks.run.endings.failed_run import FailedRun
from grader.checks.source.causes import stands_at
from grader.checks.source.files.rank_files import read_too_early
from grader.model.diagnosis import Diagnosis

ORDER = 15


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak where the line that failed reads the files of all ranks, and nothing waits for them."""
    script, cause = run.evidence.script, run.cause
    if cause is None:
        return None
    for early in read_too_early(script):
        if not stands_at(script, script.names.tree(early.read).statement(early.read), cause.site):
            continue
        said = f"{cause.type}: {run.words}" if run.words else cause.type
        return run.crash(
            title="A file of another rank was read before it was written",
            what=f"failed to read the file of another rank (“{said}”)",
            why=f"Each rank writes its own at {script.at(early.write)}, and nothing makes the reader wait until all "
            "are whole",
            hint=early.hint,
        )
    return None
