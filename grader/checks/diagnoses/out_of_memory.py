"""The run needed more memory than there is.

## What happened
All ranks together went over the run's memory limit, the kernel killed a rank, or one allocation failed on the CPU or a
GPU.

## Why
Every rank holds its own copy of the model, its optimizer state, its batch and its workers. Memory that grows from step
to step is kept by the script: losses or outputs stored with their graph.

## Mend it
Smaller batches per rank, fewer workers, `loss.item()` or `loss.detach()` for what is stored, `torch.no_grad()` around
evaluation.
"""

from __future__ import annotations

import re

from grader.checks.phrases import ranks
from grader.checks.run.endings.failed_run import FailedRun
from grader.checks.source.causes import kept_tensors, lines
from grader.model.diagnosis import Diagnosis
from grader.model.run import Ending
from grader.model.trace import RankTrace

ORDER = 5
_MIB = 1 << 20
_CUDA = re.compile(
    r"CUDA out of memory|CUDA error: out of memory|OutOfMemoryError|CUBLAS_STATUS_ALLOC_FAILED"
)
_GROWTH = 1.5
_LIMIT = re.compile(r"used (?P<used>[\d,]+ MiB); the limit is (?P<limit>[\d,]+ MiB)")
_HINT = (
    "Take smaller batches per rank and fewer loader workers, store numbers instead of tensors (`loss.item()`), and "
    "evaluate under `torch.no_grad()`."
)

_KEPT = (
    "Leave the line out, or keep a number there (`loss.item()`): a kept tensor holds its memory, and that of the graph "
    "which it comes from, until the end."
)


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak of memory: a GPU's, one allocation, or the sum of all ranks."""
    cause = run.cause
    if cause is not None and (run.saying(_CUDA) or cause.type == "OutOfMemoryError"):
        return run.crash(
            title="A GPU ran out of memory",
            what=f"ran out of GPU memory (“{run.words}”)",
            why=(
                "A GPU holds the model, its gradients and optimizer state and one rank's batch, and a second rank on "
                "the same GPU, as without `torch.cuda.set_device(local_rank)`, needs all of that again"
            ),
            hint=f"{_HINT} Check that every rank uses a GPU of its own.",
        )
    if run.ending is not Ending.OUT_OF_MEMORY:
        return None
    grown = _growth(run)
    if cause is not None and cause.type:
        return run.crash(
            title="An allocation failed",
            what=f"asked for memory that is not there (“{run.words}”)",
            why=f"One tensor is larger than the memory that is left{grown}",
            hint="Check the sizes that reach this line. " + _HINT,
        )
    peaks = {r.rank: r.peak_rss_bytes for r in run.evidence.record.ranks}
    by_rank = ", ".join(f"rank {r} up to {size / _MIB:,.0f} MiB" for r, size in list(peaks.items())[:8])
    limit = _LIMIT.search(run.evidence.record.ending_reason)
    what = (
        f"All ranks together used {limit['used']} of {limit['limit']} that they may ({by_rank})"
        if limit
        else f"{ranks(f.rank for f in run.failures) if run.failures else 'A rank'} was killed because the machine had "
        f"no memory left ({by_rank})"
    )
    kept = lines(run.evidence.script, kept_tensors(run.evidence.script)) if grown else ()
    return run.parting(
        title="The run needed more memory than it may",
        what=what,
        why=f"Each rank has its own copy of the model, its batch and its loader's workers{grown}",
        hint=_KEPT if kept else _HINT,
        where=kept,
        ranks=tuple(f.rank for f in run.failures),
        details={"peak_bytes": {str(r): size for r, size in peaks.items()}},
    )


def _growth(run: FailedRun) -> str:
    """Said where resident memory grew from step to step."""
    for rank in run.evidence.trace.ranks:
        sizes = _sizes(rank)
        if len(sizes) > 1 and sizes[-1][1] > _GROWTH * sizes[0][1]:
            (first, least), (last, most) = sizes[0], sizes[-1]
            return (
                f", and rank {rank.rank} grew from {least / _MIB:,.0f} MiB in step {first} to {most / _MIB:,.0f} MiB "
                f"in step {last}, as when losses or outputs are kept with their graphs"
            )
    return ""


def _sizes(rank: RankTrace) -> list[tuple[int, int]]:
    return [(s.n, s.rss_bytes) for s in rank.steps if s.rss_bytes]
