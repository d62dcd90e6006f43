"""Some ranks stopped training while the others went on.

## What happened
One rank left the loop (an early stop, a `break`, a `return`) after an epoch, or in the middle of one, and the others
began the next step.

## Why
Every training step of a wrapped model needs all ranks. A decision to stop that each rank takes from its own numbers, or
that only rank 0 takes, is not the same decision everywhere.

## Mend it
Decide on one rank and tell the others: `stop = torch.tensor(float(stop), device=device); dist.broadcast(stop, src=0)`,
then `if stop.item(): break` on every rank.
"""

from __future__ import annotations

from grader.checks.phrases import count, place, ranks, told_once
from grader.checks.run.endings.failed_run import FailedRun, named, positions_text
from grader.checks.run.endings.loop_divergence import exits, left_epoch, shorter_loop, stopped_training
from grader.checks.source.collectives.sums_on_one_rank import SumOnOneRank, sum_on_one_rank
from grader.checks.source.ranks.early_exits import EarlyExits
from grader.checks.source.ranks.shared_stops import decided_together
from grader.model.diagnosis import Diagnosis
from grader.model.finding import Location

ORDER = 34
_WHY = (
    "Every step of the wrapped model needs all ranks, so a stop that is decided from one rank's own numbers, or on one "
    "rank only, leaves the others waiting"
)
_HINT = (
    "Take the decision once and share it: `stop = torch.tensor(float(stop), device=device)`, "
    "`dist.broadcast(stop, src=0)` on all ranks, then `if stop.item(): break`."
)


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak of ranks that were out of the loop over epochs, or out of an epoch before its end."""
    return (_stopped(run) or _broke_off(run)) if run.parted else None


def _stopped(run: FailedRun) -> Diagnosis | None:
    apart = stopped_training(run)
    if apart is None:
        return None
    lines, together = _exits(run, apart.ahead[0].rank)
    gone = [s.rank for s in apart.behind]
    bound, hint = shorter_loop(run.evidence.script)
    lines = lines or bound
    half = None if hint or _known(run) else sum_on_one_rank(run.evidence.script)
    return run.parting(
        title=f"{ranks(gone)} stopped training before the others",
        what=f"{ranks(gone)} left the training loop after {count(apart.finished, 'epoch')}{named(lines)} and "
        f"{_now(run, gone)}; one epoch further on, {positions_text(apart.ahead)}",
        why=_WHY if half is None else half.says,
        hint=hint or (half.hint if half is not None else together) or _HINT,
        where=(*lines, *_lines(run, half)),
        ranks=tuple(gone),
        details={"epochs": apart.finished},
    )


def _broke_off(run: FailedRun) -> Diagnosis | None:
    found = left_epoch(run)
    if found is None:
        return None
    epoch, gone, still = found
    early = [s for s in gone if s.exhausted is False]
    if not early:
        return None
    numbers, batches = [s.rank for s in early], count(early[0].num_batches, "batch", "batches")
    rest = [run.positions[s.rank] for s in still]
    lines, together = _exits(run, still[0].rank, of_epoch=True)
    lines = lines or place(early[0].site)
    half = None if _known(run) else sum_on_one_rank(run.evidence.script)
    return run.parting(
        title=f"{ranks(numbers)} broke off an epoch that the others went on with",
        what=f"{ranks(numbers)} left epoch {epoch.number} after {batches}{named(lines)} and "
        f"{_now(run, numbers)}; {positions_text(rest)}",
        why=_WHY if half is None else half.says,
        hint=(half.hint if half is not None else together) or _HINT,
        where=(*lines, *_lines(run, half)),
        ranks=tuple(numbers),
    )


def _known(run: FailedRun) -> bool:
    """Whether the text shows an exit that each rank decides on by something else."""
    return any(not one.fails for one in EarlyExits(run.evidence.script).all())


def _lines(run: FailedRun, half: SumOnOneRank | None) -> tuple[Location, ...]:
    return told_once(map(run.evidence.script.location, (half.call, half.read))) if half is not None else ()


def _now(run: FailedRun, gone: list[int]) -> str:
    text = positions_text([run.positions[r] for r in gone])
    return text.partition(" ")[2].partition(" ")[2] if len(gone) == 1 else f"then {text}"


def _exits(run: FailedRun, ahead: int, *, of_epoch: bool = False) -> tuple[tuple[Location, ...], str]:
    """The line that leaves the loop, where only one can have been meant, and how all ranks would leave there."""
    script = run.evidence.script
    leaving = exits(run, run.positions[ahead], of_epoch=of_epoch)
    guarded = [n for n in leaving if script.guards.partial(n) is not None]
    likely = guarded or list(leaving)
    if len(likely) != 1 and not guarded:
        return (), ""
    return (script.location(likely[0]),), decided_together(script, likely[0])
