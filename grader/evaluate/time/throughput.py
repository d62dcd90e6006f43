"""How fast a run trained, from its own trace: shown, compared with one rank, never worth points by itself."""

from __future__ import annotations

from grader.checks.run.contradictions.failed_hooks import lost_steps
from grader.checks.run.data.loader_passes import passes_of
from grader.checks.run.models.parallel_layout import Layout
from grader.checks.run.optimisation.replayed_steps import replays
from grader.checks.run.optimisation.step_times import step_times
from grader.model.trace import RankTrace, Step, Trace


def samples_per_s(trace: Trace | None, *, in_rows: bool = True) -> float | None:
    """Samples per second in training steps, all ranks together; None where too little was told.

    Per rank: samples of its steps over their time, from each step to the next; what lies between passes over the data,
    such as validation and checkpoints, is no part of it. None, too, where steps were replayed unseen. `in_rows`: a row
    of a batch is a sample; else every number in it.
    """
    if trace is None or any(map(replays, trace.ranks)):
        return None
    # Ranks that hold parts of one model work on the same samples: the first of them tells of all.
    working = Layout.of(trace).one_each(trace.ranks)
    rates = [rate for rank in working if (rate := _rate(rank, in_rows)) is not None]
    return sum(rates) if rates and len(rates) == len(working) else None


def count_of(step: Step, in_rows: bool) -> int:
    """Samples of a step: rows that models were called with, or the numbers in them, where these are told."""
    return step.samples if in_rows else step.numbers or step.samples


def _rate(rank: RankTrace, in_rows: bool) -> float | None:
    timed = step_times(rank)
    samples, seconds = sum(count_of(one.step, in_rows) for one in timed), sum(one.seconds for one in timed)
    return samples / seconds if samples > 0 and seconds > 0 else None


def num_epochs(trace: Trace | None) -> int | None:
    """Passes over training loaders on the lowest rank that took steps; None where no loader was seen training."""
    for rank in trace.ranks if trace is not None else ():
        if rank.steps:
            return sum(1 for p in passes_of(rank) if p.kind == "training") or None
    return None


def num_steps(trace: Trace | None) -> int | None:
    """Optimizer steps of the rank that took most; None where nothing was told, or steps went by unseen."""
    ranks = trace.ranks if trace is not None else ()
    if trace is None or all(rank.start is None for rank in ranks):
        return None
    if any(replays(rank) or lost_steps(rank) for rank in ranks):
        return None
    return max(len(rank.steps) for rank in trace.ranks)
