"""Number series behind the plots, taken from an attempt and thinned out so that long runs stay small.

Pure Python on what the trace and `metrics.json` say; what is missing gives empty lists, never an error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from grader.checks.run.optimisation.step_times import evaluation_spans, every_step_time, step_times
from grader.evaluate.time.throughput import count_of
from grader.judging.attempt import Attempt
from grader.model.trace import RankTrace, Step

Points: TypeAlias = tuple[list[float], list[float]]
"""x and y values of one line."""

MAX_POINTS = 160
_LONGEST_S = 31 * 24 * 3600.0
_MOST = 1e15


@dataclass(frozen=True, slots=True)
class Strip:
    """Shares of time by activity in equal slices of a rank's run; each list has one value (0–1) per slice."""

    rank: int
    shares: dict[str, list[float]]


ACTIVITIES = ("data", "compute", "optimizer", "validation")


def tracers(attempt: Attempt) -> tuple[RankTrace, ...]:
    """The ranks that took optimizer steps while the probe watched; steps with impossible clocks are left out."""
    ranks = attempt.trace.ranks if attempt.trace else ()
    kept = (replace(rank, steps=tuple(step for step in rank.steps if _possible(step))) for rank in ranks)
    return tuple(rank for rank in kept if rank.steps)


def _possible(step: Step) -> bool:
    # A trace can be forged; what is drawn must at least lie within a month.
    clocks = (step.t, step.data_s, step.compute_s, step.optimizer_s or 0.0, step.device_s or 0.0)
    return all(0 <= clock < _LONGEST_S for clock in clocks) and 0 <= step.samples < _MOST


def _lines(series: Iterable[tuple[int, list[tuple[float, float]]]]) -> list[tuple[int, Points]]:
    """One thinned line per rank, those without any point left out."""
    thinned = ((rank, thin([x for x, _ in pairs], [y for _, y in pairs])) for rank, pairs in series)
    return [(rank, points) for rank, points in thinned if points[0]]


def thin(xs: Sequence[float], ys: Sequence[float]) -> Points:
    """At most `MAX_POINTS` points: means over equal groups of neighbours; values that no plot can hold are dropped."""
    pairs = [(x, y) for x, y in zip(xs, ys, strict=True) if math.isfinite(x) and abs(y) < _MOST]
    size = max(1, math.ceil(len(pairs) / MAX_POINTS))
    groups = [pairs[i : i + size] for i in range(0, len(pairs), size)]
    return [sum(x for x, _ in g) / len(g) for g in groups], [sum(y for _, y in g) / len(g) for g in groups]


def num_epochs(attempt: Attempt) -> int:
    """Epochs of the run as coverage, reported metrics or passes over loaders tell; 0 where nothing does."""
    if attempt.coverage:
        return len(attempt.coverage)
    reported = attempt.evaluation.reported if attempt.evaluation else None
    return len(reported.epochs) if reported else 0


def step_losses(attempt: Attempt) -> list[tuple[int, Points]]:
    """Training loss per rank as the probe saw it; x in epochs where their number is known, else in steps."""
    epochs = num_epochs(attempt)

    def pairs(rank: RankTrace) -> list[tuple[float, float]]:
        scale = epochs / len(rank.steps) if epochs else 1.0
        return [(i * scale, step.loss) for i, step in enumerate(rank.steps, start=1) if step.loss is not None]

    return _lines((rank.rank, pairs(rank)) for rank in tracers(attempt))


def reported(attempt: Attempt, name: str) -> Points:
    """One metric of `metrics.json` at the end of each epoch."""
    told = attempt.evaluation.reported if attempt.evaluation else None
    pairs = [(float(i), e[name]) for i, e in enumerate(told.epochs, start=1) if name in e] if told else []
    return thin([x for x, _ in pairs], [y for _, y in pairs])


def throughput(attempt: Attempt) -> list[tuple[int, Points]]:
    """Samples per second of training per rank over time; validation and saving are left out of the clock."""
    lines = []
    for rank in tracers(attempt):
        timed = step_times(rank) or every_step_time(rank)
        size = max(1, math.ceil(len(timed) / 40))
        xs, ys = [], []
        for i in range(0, len(timed), size):
            group = timed[i : i + size]
            took_s = sum(one.seconds for one in group)
            if took_s > 0:
                xs.append(group[-1].step.t)
                ys.append(sum(count_of(one.step, attempt.task.counted_in_rows) for one in group) / took_s)
        if xs:
            lines.append((rank.rank, (xs, ys)))
    return lines


def learning_rates(attempt: Attempt) -> list[tuple[int, Points]]:
    """Learning rate of the first parameter group per rank, by step."""
    return _lines(
        (rank.rank, [(float(index), step.lr[0]) for index, step in enumerate(rank.steps) if step.lr])
        for rank in tracers(attempt)
    )


def memory(attempt: Attempt) -> tuple[str, list[tuple[int, Points]]]:
    """Memory per rank over time in MiB: device memory where there is a device, else the process's."""
    for name, kind in (("device_bytes", "device memory"), ("rss_bytes", "process memory")):
        lines = _lines(
            (rank.rank, [(step.t, getattr(step, name) / 2**20) for step in rank.steps if getattr(step, name)])
            for rank in tracers(attempt)
        )
        if lines:
            return kind, lines
    return "", []


def timeline(attempt: Attempt, slices: int = 120) -> tuple[float, list[Strip]]:
    """Length of the run in seconds, and what each rank did in each of `slices` equal parts of it."""
    ranks = tracers(attempt)
    end = max((rank.steps[-1].t + (rank.steps[-1].optimizer_s or 0.0) for rank in ranks), default=0.0)
    if end <= 0:
        return 0.0, []
    strips = []
    for rank in ranks:
        shares = {name: [0.0] * slices for name in ACTIVITIES}
        for index, step in enumerate(rank.steps):
            ready = step.t - step.compute_s
            _spread(shares["data"], ready - step.data_s, ready, end)
            _spread(shares["compute"], ready, step.t, end)
            following = rank.steps[index + 1] if index + 1 < len(rank.steps) else None
            stepped_t = step.t + ((following and following.optimizer_s) or 0.0)
            _spread(shares["optimizer"], step.t, stepped_t, end)
            if step.device_s is not None and following is not None:
                # The device goes on with what was launched while the script waits for it.
                next_t = following.t - following.compute_s - following.data_s
                _spread(shares["compute"], stepped_t, min(ready + step.device_s, next_t), end)
        for begin_t, end_t in evaluation_spans(rank):
            _spread(shares["validation"], begin_t, min(end_t, end), end)
        strips.append(
            Strip(rank.rank, {name: [min(1.0, v) for v in values] for name, values in shares.items()})
        )
    return end, strips


def waiting_share(attempt: Attempt) -> float | None:
    """Share of the training time that the ranks spent waiting for data; None where unknown."""
    timed = [one for rank in tracers(attempt) for one in step_times(rank)]
    took_s = sum(one.seconds for one in timed)
    return sum(one.step.data_s for one in timed) / took_s if took_s > 0 else None


def _spread(shares: list[float], begin: float, end: float, whole: float) -> None:
    """Adds the time from `begin` to `end` to the slices it covers, as shares of a slice."""
    width = whole / len(shares)
    begin, end = max(0.0, begin), min(whole, end)
    if not (math.isfinite(begin) and math.isfinite(end)) or end <= begin:
        return
    first, last = int(begin / width), min(int(end / width), len(shares) - 1)
    for index in range(first, last + 1):
        covered = min(end, (index + 1) * width) - max(begin, index * width)
        shares[index] += max(0.0, covered) / width
