"""Some ranks evaluated through the wrapper while the others did not.

## What happened
`model(x)` was called on one rank only, for a validation on rank 0 say, and `model` was the wrapped model.

## Why
A forward pass of the wrapper is a meeting of all ranks: it copies rank 0's buffers (BatchNorm's statistics) to the
others, and in training it prepares the gradients' exchange. The others never come, or come with something else.

## Mend it
Evaluate with the network inside, `model.module(x)`, where one rank evaluates; or let all ranks evaluate, each its own
share, and add up the counts with `dist.all_reduce`.
"""

from __future__ import annotations

from grader.checks.phrases import place, ranks
from grader.checks.run.endings.failed_run import FailedRun, named, positions_text
from grader.checks.run.endings.rank_position import RankPosition
from grader.model.diagnosis import Diagnosis
from grader.model.finding import Location
from grader.model.trace import RankTrace

ORDER = 30
_FORWARD = ("DDP buffer broadcast", "DDP synchronisation")


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak of forward passes of the wrapper under a rank test, or of an evaluation that only some ranks began."""
    if not run.parted or run.evidence.world_size < 2:
        return None
    alone: dict[int, tuple[Location, ...]] = {
        s.rank: s.where
        for s in run.positions
        if s.operation in _FORWARD and (s.guard is not None or _evaluates(run, s))
    }
    alone = alone or _unfinished(run)
    if not alone or len(alone) == run.evidence.world_size:
        return None
    lines = tuple(dict.fromkeys(p for places in alone.values() for p in places))
    rest = [s for s in run.positions if s.rank not in alone]
    return run.parting(
        title=f"{ranks(alone)} called the wrapped model without the others",
        what=f"{ranks(alone)} evaluated through the wrapper{named(lines)}, alone; {positions_text(rest)}",
        why=(
            "A forward pass of the wrapped model is a meeting of all ranks, which exchanges buffers such as "
            "BatchNorm's statistics, so a rank that makes one alone waits for the others or takes their next "
            "message for its own"
        ),
        hint=(
            "Where one rank evaluates, call the network inside: `model.module(x)`. Better, let every rank evaluate "
            "its own share and sum the counts with `dist.all_reduce`."
        ),
        where=lines,
        ranks=tuple(alone),
    )


def _evaluates(run: FailedRun, stand: RankPosition) -> bool:
    """Whether the innermost function that the rank stands in switches gradients or training off."""
    script = run.evidence.script
    frame = stand.site
    if frame is None or frame.function in ("<module>", "main"):
        return False
    tree = next((t for t in script.trees if t.path == frame.path), None)
    if tree is None:
        return False
    first = next(
        (n for n in tree.functions if getattr(n, "name", "") == frame.function and n.lineno <= frame.line),
        None,
    )
    if first is None:
        return False
    text = "\n".join(script.line(frame.path, n) for n in range(max(first.lineno - 2, 1), frame.line + 1))
    return any(word in text for word in ("no_grad", "inference_mode", ".eval()"))


def _unfinished(run: FailedRun) -> dict[int, tuple[Location, ...]]:
    """Ranks whose last evaluation was through the wrapper, where another rank had begun fewer."""
    begun = {r.rank: _begun(r) for r in run.evidence.trace.ranks}
    fewest = min(len(found) for found in begun.values())
    return {rank: found[-1] for rank, found in begun.items() if len(found) > fewest}


def _begun(rank: RankTrace) -> list[tuple[Location, ...]]:
    return [
        place(e.site)
        for e in rank.events("evaluation")
        if e.fields.get("op") == "begin" and e.fields.get("through_wrapper") is True
    ]
