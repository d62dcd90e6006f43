"""Whether gradients of a sharded model met: those of its shards, and those of tensors that were left whole.

The first: whether the last backward pass before a step sent its gradients to the ranks that hold the shards.
The gradients of shards can't be compared among ranks; that nothing was reduced between the last backward pass and the
step can be seen. Only the first steps are told call by call, and only those are read.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, isclose

from grader.checks.evidence import Evidence
from grader.checks.phrases import count, place, ranks
from grader.checks.rule import Hit
from grader.checks.run.models.model_memory import model_memory
from grader.checks.run.models.parallel_layout import SHARDING
from grader.checks.run.models.replica_comparison import sharded
from grader.checks.source.causes import lines
from grader.checks.source.gradients.sync_switches import switches
from grader.checks.source.gradients.withheld_exchanges import Withheld
from grader.model.call_site import Site
from grader.model.trace import Collective, RankTrace

_MIN_STEPS = 2
_OFF = 1e-4


def unreduced(evidence: Evidence, told: Iterable[Withheld]) -> Hit | None:
    """Steps with gradients that no other rank had a part in, or not in those of their last pass.

    The text has to say what held them back; where it only has a switch, an earlier pass of the same line has to have
    reduced in each step that was looked at.
    """
    active = evidence.trace.trainers
    causes = list(told)
    turned = [s for tree in evidence.script.trees for s in switches(tree)]
    if len(active) < 2 or not (causes or turned) or not sharded(evidence.trace):
        return None
    seen = [_steps(rank) for rank in active]
    if any(len(steps) < _MIN_STEPS or any(last for _, _, last in steps) for steps in seen):
        return None
    late = all(early for steps in seen for _, early, _ in steps)
    if not (causes or late):
        return None
    site = next((s.site for s in active[0].steps if s.site), None)
    what = (
        f"reduced gradients over ranks in an earlier micro-batch of each step and none between the last backward pass "
        f"and the optimizer step, in {count(min(map(len, seen)), 'step')} of those that were told call by call (what "
        "the last pass gave is missing in its step and is added to the next one's)"
        if late
        else "reduced no gradient over ranks between the last backward pass and the optimizer step, in "
        f"{count(min(map(len, seen)), 'step')} of those that were told call by call"
    )
    first = causes[0] if causes else None
    told_at = first.node if first is not None else turned[0].node
    says = first.says if first is not None else f"tells the model {evidence.script.quote(told_at)}"
    return Hit(
        message=f"{ranks(r.rank for r in active)} {what}: {evidence.script.at(told_at)} {says}.",
        hint=first.hint
        if first is not None
        else "Have the exchange on in the last micro-batch of each step, and off in the others alone.",
        fix=first.fix if first is not None else None,
        where=(*lines(evidence.script, [c.node for c in causes] or [told_at]), *place(site)),
        ranks=tuple(r.rank for r in active),
        details={"steps": [n for n, _, _ in seen[0]][:8]},
    )


def whole_tensors_apart(evidence: Evidence) -> Hit | None:
    """Tensors that a sharded model left whole on every rank, stepped with gradients that nobody averaged."""
    active = evidence.trace.trainers
    if len(active) < 2 or not any(w.kind in SHARDING for r in active for w in r.wraps):
        return None
    first, *others = active
    whole = set.intersection(*(_whole(rank) for rank in active))
    for name in sorted(whole):
        own = _gradients(first, name)
        apart = sorted(
            n
            for other in others
            for n, theirs in _gradients(other, name).items()
            if n in own and not isclose(own[n], theirs, rel_tol=_OFF, abs_tol=_OFF * 1e-3)
        )
        if len(apart) < _MIN_STEPS or not _weights_apart(active, name):
            continue
        held = next(iter(model_memory(evidence.trace).values()), None)
        left = (
            f": {held.num_tensors - held.num_sharded} of {held.num_tensors} tensors are whole" if held else ""
        )
        sharded_at = tuple(dict.fromkeys(p for w in first.wraps if w.kind in SHARDING for p in place(w.site)))
        return Hit(
            message=f"{ranks(r.rank for r in active)} stepped with different gradients of a tensor that is not sharded "
            f"({name}), in {count(len(apart), 'step')} of those compared{left}. Sharding exchanges the gradients of "
            "what it was called for; each rank trains the rest by itself, and the ranks' models part.",
            hint="Shard the whole model after its parts: `fully_shard(model)` behind the last call for a part of it.",
            where=sharded_at,
            ranks=tuple(r.rank for r in active),
            details={"tensor": name, "steps": apart[:8]},
        )
    return None


def _whole(rank: RankTrace) -> set[str]:
    """Of the tensors that stand for all, those that are not split among ranks, by the names in its steps."""
    told = ((e.fields.get("names"), e.fields.get("of")) for e in rank.events("placed"))
    return {
        str(name)
        for names, of in told
        if isinstance(names, list) and isinstance(of, list)
        for name, split in zip(names, of, strict=False)
        if split == []
    }


def _gradients(rank: RankTrace, name: str) -> dict[int, float]:
    """Step → sum of a tensor's gradient, where it was looked at."""
    found: dict[int, float] = {}
    for step in rank.steps:
        known = dict(zip(step.grad_names, step.grads or (), strict=False))
        if (gradient := known.get(name)) is not None:
            found[step.n] = gradient
    return found


def _weights_apart(active: tuple[RankTrace, ...], name: str) -> bool:
    """Whether the tensor itself ended with different numbers, so that nothing evened it out after the steps."""
    last = []
    for rank in active:
        sums = [p.sums[p.names.index(name)] for p in rank.params if name in p.names]
        last.append(sums[-1] if sums else None)
    known = [one for one in last if one is not None]
    return len(known) == len(active) and not all(isclose(one, known[0], rel_tol=_OFF) for one in known)


def _steps(rank: RankTrace) -> list[tuple[int, bool, bool]]:
    """Steps whose calls were all told: whether earlier passes of the last one's line reduced, and whether that did."""
    reductions = [c for c in rank.collectives if "reduce" in c.name]
    until, backwards = _told_until(reductions), rank.events("backward")
    found, before = [], -inf
    alone = len({s.optimizer for s in rank.steps}) == 1
    for step in rank.steps:
        own = [e for e in backwards if before < e.t <= step.t]
        before = step.t
        if len(own) != (step.backwards or 0) or not own or step.t > until:
            continue
        last = own[-1].t
        same = [e for e in own[:-1] if e.site == own[-1].site]
        early = alone and any(e.t < c.t <= last for e in same for c in reductions)
        found.append((step.n, early, any(last < c.t <= step.t for c in reductions)))
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
