"""Ranks had different numbers of batches.

## What happened
One rank's loader ran dry while another's still had batches, or its loop was shorter: the first went on to the next
collective, the second into one training step more.

## Why
Every backward pass of a wrapped model is a meeting of all ranks. The one with more batches waits for partners that do
not come, or meets them in another collective.

## Mend it
Give all ranks shards of one length (`DistributedSampler` pads or drops for that), or let all stop at the shortest.
"""

from __future__ import annotations

from grader.checks.phrases import count, listed, place, ranks
from grader.checks.run.data.dealt_rounds import EVEN, dealt_rounds
from grader.checks.run.endings.failed_run import FailedRun, named, positions_text
from grader.checks.run.endings.left_loops import uneven_loop
from grader.checks.run.endings.loop_divergence import left_epoch
from grader.checks.run.optimisation.step_moments import is_one_further
from grader.checks.source.data.uneven_rounds import equal_rounds
from grader.model.diagnosis import Diagnosis

ORDER = 36
_WHY = (
    "Every backward pass of the wrapped model is a meeting of all ranks, so a rank with more batches waits for "
    "partners that have gone on to something else"
)


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak of an epoch that ran dry, or a loop that was over, on some ranks while others were in a batch more."""
    return (_ran_dry(run) or _goes_on(run) or _dealt(run)) if run.parted else None


def _goes_on(run: FailedRun) -> Diagnosis | None:
    """A loop without a loader, which the text makes longer on some ranks."""
    apart = uneven_loop(run.evidence)
    if apart is None:
        return None
    script = run.evidence.script
    written, _ = equal_rounds(script, apart.node)
    return run.parting(
        title="Ranks went through a loop unequally often",
        what=f"{apart.sentence.removesuffix('.')}; {positions_text(run.positions)}",
        why=_WHY,
        hint=f"Write `{written}` there, the same on every rank."
        if written
        else "Let all ranks go through it equally often.",
        where=(script.location(apart.node),),
        ranks=(),
    )


def _dealt(run: FailedRun) -> Diagnosis | None:
    """A loop whose rounds themselves are dealt out, to some ranks more of them."""
    apart = dealt_rounds(run.evidence)
    if apart is None:
        return None
    return run.parting(
        title="Ranks went through a loop unequally often",
        what=f"{apart.sentence.removesuffix('.')}; {positions_text(run.positions)}",
        why=_WHY,
        hint=EVEN,
        where=(apart.where,),
        ranks=(),
    )


def _ran_dry(run: FailedRun) -> Diagnosis | None:
    found = left_epoch(run)
    if found is None or not all(s.exhausted for s in found[1]):
        return None
    epoch, dry, still = found
    least = min(s.num_batches for s in dry)
    begun = {s.rank: s.num_batches + is_one_further(run.evidence.rank(s.rank)) for s in still}
    still = tuple(s for s in still if begun[s.rank] > least)
    if not still:
        return None
    numbers = [s.rank for s in dry]
    waiting = [s.rank for s in still]
    lines = tuple(dict.fromkeys(p for s in (*still, *dry) for p in place(s.site)))
    batches = count(least, "batch", "batches")
    nth = f"batch {begun[still[0].rank]:,}"
    return run.parting(
        title="Ranks had different numbers of batches",
        what=(
            f"In epoch {epoch.number} {ranks(numbers).lower()} ran out of data after "
            f"{batches} (loader{named(lines)}) while {ranks(waiting).lower()} went into {nth}; "
            f"{positions_text(run.positions)}"
        ),
        why=_WHY,
        hint=(
            "Deal the samples with `DistributedSampler`, which gives all ranks equally many, or cut shards of your own "
            "to one length (`len(dataset) // world_size`)."
        ),
        where=lines,
        ranks=(),
        details={
            "batches": listed(f"{begun.get(s.rank, s.num_batches)} on rank {s.rank}" for s in epoch.shards)
        },
    )
