"""Whether ranks that hold parts of one model were given the same samples, step by step and in each validation pass.

By indices where loaders tell them, else by hashes of what the model was given; a pipeline's later stages are given what
the first one made of it, and there only indices count.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from grader.checks.run.data.loader_passes import RankPass, passes_of
from grader.checks.run.models.parallel_layout import Layout, Ranks
from grader.model.call_site import Site
from grader.model.trace import RankTrace, Trace


@dataclass(frozen=True, slots=True)
class BatchComparison:
    """Batches of ranks that hold parts of one model, held against each other.

    Attributes:
        ranks: the two that differ first; empty where none do.
        when: `in step 3`, `in validation pass 0`. given: whether the same indices became different inputs.
        num_same: batches, or steps, in which ranks had the same. site: the loader of the second rank.
    """

    ranks: Ranks
    when: str
    given: bool
    num_same: int
    site: Site | None


def compare_batches(trace: Trace) -> BatchComparison:
    """Compare the ranks of every model that several ranks hold."""
    layout = Layout.of(trace)
    same = 0
    for model in layout.models:
        first, *others = [_Drawn(trace.ranks[r]) for r in model]
        for other in others:
            one = next((d for d in (first, *others) if d is not other and d.training), first)
            for when, site, given, equal in _compare(one, other, hashes="pipeline" not in layout.kinds):
                if not equal:
                    return BatchComparison((one.rank, other.rank), when, given, same, site)
                same += 1
    return BatchComparison((), "", False, same, None)


class _Drawn:
    """What one rank drew in training, by step, and in validation, by pass; and what its model was given."""

    def __init__(self, rank: RankTrace) -> None:
        self.rank = rank.rank
        self.training: dict[int, tuple[int, ...]] = defaultdict(tuple)
        self.validation: list[tuple[int, ...]] = []
        self.site: Site | None = None
        self.given: dict[int, tuple[str, ...]] = defaultdict(tuple)
        for p in passes_of(rank):
            if p.kind == "training":
                self.site = self.site or (p.loader.site if p.loader is not None else None)
                for batch in p.batches:
                    self.training[batch.step] += batch.indices if batch.indices is not None else (-1,)
            elif p.kind == "validation":
                self.validation.append(_indices(p))
        for feed in rank.feeds:
            self.given[feed.step] += feed.hashes


def _indices(p: RankPass) -> tuple[int, ...]:
    return tuple(i for batch in p.batches for i in (batch.indices if batch.indices is not None else (-1,)))


def _compare(one: _Drawn, other: _Drawn, *, hashes: bool) -> list[tuple[str, Site | None, bool, bool]]:
    """(When, loader, whether what was given tells, equal) for everything that both ranks tell, in order."""
    found = []
    steps = min(max(one.training, default=-1), max(other.training, default=-1))
    for step in sorted(one.training.keys() & other.training.keys()):
        a, b = one.training[step], other.training[step]
        # What was drawn after the last step both took may have been cut short by the run's end.
        if -1 not in (*a, *b) and (step < steps or len(a) == len(b)):
            found.append((f"in step {step}", other.site, False, a == b))
    for number, (a, b) in enumerate(zip(one.validation, other.validation, strict=False)):
        if -1 not in (*a, *b) and len(one.validation) == len(other.validation):
            found.append((f"in validation pass {number}", other.site, False, a == b))
    for step in sorted(one.given.keys() & other.given.keys()) if hashes else ():
        x, y = one.given[step], other.given[step]
        if x and len(x) == len(y):
            found.append((f"in step {step}", other.site, True, x == y))
    return found
