"""Whether the last backward pass before a step of sharded weights sent its gradients to the ranks that hold the shards.

The gradients of shards can't be compared among ranks; that nothing was reduced between the last backward pass and the
step can be seen. Only the first steps are told call by call, and only those are read.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from grader.checks.evidence import Evidence
from grader.checks.phrases import count, place, ranks
from grader.checks.rule import Hit
from grader.checks.run.replica_comparison import sharded, trainers
from grader.checks.source.causes import lines
from grader.checks.source.withheld_exchanges import Withheld
from grader.model.trace import Collective, RankTrace, Site

_MIN_STEPS = 2


def unreduced(evidence: Evidence, told: Iterable[Withheld]) -> Hit | None:
    """Steps with gradients that no other rank had a part in, where the text says what held them back."""
    active = trainers(evidence.trace)
    causes = list(told)
    if len(active) < 2 or not causes or not sharded(evidence.trace):
        return None
    seen = [_steps(rank) for rank in active]
    if any(len(steps) < _MIN_STEPS or any(reduced for _, reduced in steps) for steps in seen):
        return None
    site, first = next((s.site for s in active[0].steps if s.site), None), causes[0]
    return Hit(
        message=f"{ranks(r.rank for r in active)} reduced no gradient over ranks between the last backward pass and "
        f"the optimizer step, in {count(min(map(len, seen)), 'step')} of those that were told call by call: "
        f"{evidence.script.at(first.node)} {first.says}.",
        hint=first.hint,
        fix=first.fix,
        where=(*lines(evidence.script, [c.node for c in causes]), *place(site)),
        ranks=tuple(r.rank for r in active),
        details={"steps": [n for n, _ in seen[0]][:8]},
    )


def _steps(rank: RankTrace) -> list[tuple[int, bool]]:
    """Steps whose calls were all told, and whether a reduction came between their last backward pass and them."""
    reductions = [c for c in rank.collectives if "reduce" in c.name]
    until, backwards = _told_until(reductions), [e.t for e in rank.events("backward")]
    found, before = [], -inf
    for step in rank.steps:
        own = [t for t in backwards if before < t <= step.t]
        before = step.t
        if len(own) != (step.backwards or 0) or not own or step.t > until:
            continue
        found.append((step.n, any(max(own) < c.t <= step.t for c in reductions)))
    return found


def _told_until(calls: list[Collective]) -> float:
    """When the first call was left out: calls of one line are numbered."""
    last: dict[tuple[str, Site | None], tuple[int, float]] = {}
    until = inf
    for call in sorted(calls, key=lambda c: c.t):
        number, t = last.get((call.name, call.site), (0, call.t))
        if call.n > number + 1:
            until = min(until, t)
        last[call.name, call.site] = call.n, call.t
    return until
