"""One rank does more than the others in each step, and they wait for it.

## What it finds
Runs in which one rank spends much of its training between the steps (statistics, logging, pictures, a checkpoint in
every round), while the others have gone on and wait in the next exchange.

## Why it matters
All ranks meet in every step, so the slowest one sets the pace for all. What rank 0 does beside its training costs as
many devices as there are ranks.

## Example
```python
for images, labels in train_loader:
    train_step(model, optimizer, images, labels)
    if dist.get_rank() == 0:
        log_histograms(model)
```

## Use instead
```python
for number, (images, labels) in enumerate(train_loader):
    train_step(model, optimizer, images, labels)
    if dist.get_rank() == 0 and number % 100 == 0:
        log_histograms(model)
```

## How it is seen
In the run, by the time from the end of each step until the rank asks for its next batch, rank against rank within the
same passes. The line is that of a test of the rank in the training loop, where the text has one. Processor time does
not show it: a rank that sleeps, or waits for a disk, uses none.
"""

from __future__ import annotations

import ast
import bisect
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from grader.checks.phrases import ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.causes import lines
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import Function
from grader.model.finding import Severity
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.model.trace import RankTrace

SEVERITY = Severity.HINT
NEEDS = Precondition.GROUP
CLOCKED = True
EXPLAINED_BY = ("PERF001",)
_MIN_STEPS = 8
_MIN_S = 1.0
_SHARE = 0.2
"""Of the rank's training: less is a log line now and then, or a busy machine."""
_TIMES = 5.0
"""As much as the others do between two steps; the typical step, so that a rare checkpoint is none."""
_MAX_DEPTH = 3


def check_run(evidence: Evidence) -> Observation:
    """Compare what ranks do between their steps."""
    from statistics import median

    between = {rank.rank: _between(rank) for rank in evidence.trace.trainers}
    if len(between) < 2 or min(len(gaps) for gaps, _ in between.values()) < _MIN_STEPS:
        return not_observable("Too few steps were taken on two ranks to compare what lies between them.")
    for rank, (gaps, trained_s) in between.items():
        others = [sum(own) for other, (own, _) in between.items() if other != rank]
        usual = median(median(own) for other, (own, _) in between.items() if other != rank)
        more_s = sum(gaps) - median(others)
        if more_s < max(_MIN_S, _SHARE * trained_s) or median(gaps) < _TIMES * max(usual, 1e-4):
            continue
        tests = list(_tests_in_training(evidence.script))
        return flagged(
            Hit(
                message=f"{ranks([rank])} spent {sum(gaps):.1f} of {trained_s:.1f} s of its training between steps, "
                f"{median(gaps):.2g} s each time; the others {median(others):.1f} s. They go on and wait for it in the "
                "next exchange, so all ranks are as slow as this one.",
                hint="Do it less often, in one step of a hundred or once per epoch, or leave it to a thread or to a "
                "process of its own; what has to be worked out in each step, all ranks can do a part of.",
                where=lines(evidence.script, tests[:2]),
                ranks=(rank,),
                details={"between_steps_s": {str(r): round(sum(g), 3) for r, (g, _) in between.items()}},
            )
        )
    return verified("No rank did much more than the others between its steps.")


def _between(rank: RankTrace) -> tuple[list[float], float]:
    """Seconds from each step to the rank's next call for a batch, and the seconds of the passes that they lie in."""
    from grader.checks.run.data.loader_passes import passes_of

    steps = sorted(step.t for step in rank.steps)
    gaps: list[float] = []
    trained_s = 0.0
    for one in (p for p in passes_of(rank) if p.kind == "training"):
        for batch, following in zip(one.batches, one.batches[1:], strict=False):
            asked = following.t - following.wait_s
            last = bisect.bisect(steps, asked) - 1
            trained_s += following.t - batch.t
            if last >= 0 and steps[last] >= batch.t:
                gaps.append(asked - steps[last])
    return gaps, trained_s


def _tests_in_training(script: Script) -> Iterator[ast.AST]:
    """Tests of the rank that the training loop comes by in each round, also in the functions that it calls."""
    loops = [draw.loop for draw in script.training.draws if draw.trains]
    inside: list[tuple[ast.AST, int]] = [(loop, 0) for loop in loops]
    seen: set[ast.AST] = set()
    while inside:
        block, depth = inside.pop(0)
        if block in seen or depth > _MAX_DEPTH:
            continue
        seen.add(block)
        tree = script.names.tree(block)
        yield from (i for i in tree.ifs if tree.inside(i, block) and script.conditions.of(i.test).partial)
        inside += [(target, depth + 1) for target in _called(script, tree.calls_within(block))]


def _called(script: Script, calls: Iterable[ast.Call]) -> Iterator[Function]:
    for call in calls:
        yield from (
            t for t in script.graph.targets(call) if isinstance(t, ast.FunctionDef | ast.AsyncFunctionDef)
        )
