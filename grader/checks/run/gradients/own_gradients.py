"""Steps at which every rank told what its own backward passes had given and what it stepped on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from grader.checks.evidence import Evidence
from grader.checks.run.models.replica_comparison import incomparable
from grader.model.trace import RankTrace, Step

FEWEST_STEPS = 7
"""Of these, below which nothing is said."""


@dataclass(frozen=True, slots=True)
class AveragedStep:
    """One step at which all ranks told both; by rank."""

    n: int
    steps: tuple[Step, ...]


def averaging_ranks(evidence: Evidence) -> tuple[RankTrace, ...]:
    """Those whose gradients should be one and the same, nothing where there are not several."""
    ranks = evidence.trace.trainers
    return ranks if len(ranks) > 1 and not incomparable(evidence.trace) else ()


def averaged_steps(ranks: Sequence[RankTrace]) -> Iterator[AveragedStep]:
    """Those of all ranks together, in the order of the steps."""
    tables = [
        {step.n: step for step in rank.steps if step.own and step.grads and len(step.own) == len(step.grads)}
        for rank in ranks
    ]
    for n in sorted(set.intersection(*map(set, tables))) if tables else ():
        steps = tuple(table[n] for table in tables)
        if len({step.grad_names for step in steps}) == 1 and all(map(_finite, steps)):
            yield AveragedStep(n, steps)


def _finite(step: Step) -> bool:
    numbers = (*(step.grads or ()), *(step.own or ()), *(step.own_last or ()))
    return all(x is not None and math.isfinite(x) for x in numbers)
