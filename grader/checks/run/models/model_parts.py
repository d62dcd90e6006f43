"""Faults of models that several ranks hold in parts: a part that never steps, gradients of different parts mixed.

Asks the layout who holds what, and speaks in words of the mesh.
"""

from __future__ import annotations

from collections.abc import Sequence

from grader.checks.evidence import Evidence
from grader.checks.phrases import at, count, first_known, listed, place, ranks
from grader.checks.rule import Hit
from grader.checks.run.endings.end_counts import end_count
from grader.checks.run.models.equal_sums import equal
from grader.checks.run.models.parallel_layout import Layout, Ranks, lines_told
from grader.model.run import Ending
from grader.model.trace import RankTrace


def no_copies(evidence: Evidence, so: str) -> str:
    """Why there is nothing to compare."""
    layout = evidence.ledger.layout
    if not layout.divided:
        return f"Parameters are sharded among ranks, so {so}."
    model = max(layout.models, key=len)
    return f"{ranks(model)} hold parts of one model{layout.dimension(model)}, so {so}."


def copies(evidence: Evidence, active: Sequence[RankTrace]) -> str:
    """`4 ranks`, or which of them were compared with which."""
    layout = evidence.ledger.layout
    if not layout.divided:
        return f"{len(active)} ranks"
    return f"ranks with equal parts ({_sets(layout)})"


def _sets(layout: Layout) -> str:
    """`0 and 2; 1 and 3`: ranks that hold equal parts."""
    return "; ".join(listed(c) for c in [c for c in layout.copies if len(c) > 1][:4])


def along_copies(layout: Layout) -> str:
    """What to write where gradients were averaged over other ranks than those with equal parts; "" without parts."""
    first = next((c for c in layout.copies if len(c) > 1), ())
    if not layout.divided or not first:
        return ""
    return (
        f"Average over ranks that hold equal parts ({_sets(layout)}){layout.dimension(first)}, not over those that "
        "share one model: give DDP, or your own `all_reduce`, the group of the data-parallel dimension, such as "
        '`mesh["dp"].get_group()`.'
    )


def idle_parts(evidence: Evidence) -> Hit | None:
    """Ranks that hold a part of a model, go backward, and never step while their partners do."""
    layout = evidence.ledger.layout
    if evidence.record.ending is not Ending.COMPLETED or not (layout.divided or layout.by_hand):
        return None
    active = evidence.trace.trainers
    stepping = {r.rank for r in active}
    idle = {
        r.rank: passes
        for r in evidence.trace.ranks
        if r.rank not in stepping
        and (passes := end_count(r, "backwards"))
        and (layout.by_hand or stepping & set(layout.partners(r.rank)))
    }
    if not idle or not active:
        return None
    site = first_known([s.site for s in active[0].steps])
    partners = layout.with_partners(idle)
    part = (
        f"a part of the model{layout.dimension(partners)}"
        if layout.divided
        else "a stage of the script's pipeline"
    )
    first = next(iter(idle))
    return Hit(
        message=f"{ranks(idle)} {'holds' if len(idle) == 1 else 'each hold'} {part}, went backward "
        f"{count(idle[first], 'time')} and took no optimizer step, while {ranks(stepping).lower()} took "
        f"{len(active[0].steps):,}. {at(site, 'The step')} is not reached there: those weights stay as they began.",
        hint="Build an optimizer from the parameters of each rank's own part, and let every rank step it.",
        where=place(site),
        ranks=tuple(idle),
        details={"steps_by_rank": {str(r.rank): len(r.steps) for r in evidence.trace.ranks}},
    )


def mixed_parts(evidence: Evidence) -> Hit | None:
    """Different parts of one tensor that stepped with one and the same gradient: it was averaged over its parts."""
    layout = evidence.ledger.layout
    for model in layout.models if layout.divided else ():
        held = [r for r in evidence.trace.trainers if r.rank in model]
        if len(held) < 2:
            continue
        one, two = held[:2]
        split = _split_names(one, model)
        same: dict[str, int] = {}
        others = {(s.n, s.optimizer): s for s in two.steps if s.grads is not None}
        for step in (s for s in one.steps if s.grads is not None):
            other = others.get((step.n, step.optimizer))
            if (
                other is None
                or other.grads is None
                or step.grads is None
                or other.grad_names != step.grad_names
            ):
                continue
            for name, a, b in zip(step.grad_names, step.grads, other.grads, strict=False):
                if name in split and a and b:
                    same[name] = same.get(name, 0) + (1 if equal((a,), (b,)) else -(1 << 30))
        mixed = [name for name, times in same.items() if times > 1]
        if mixed:
            site = first_known([s.site for s in one.steps])
            return Hit(
                message=f"Ranks {one.rank} and {two.rank} hold different parts of `{mixed[0]}`"
                f"{layout.dimension((one.rank, two.rank))} and stepped with one and the same gradient for it at "
                f"{count(same[mixed[0]], 'compared step')}: it was averaged over ranks whose parts have nothing to do "
                f"with one another. {at(site, 'The step')} moves each part by the mean of all.",
                hint=along_copies(layout)
                or "Average no gradients over the ranks that share one model: each of them has a part of its own.",
                where=place(site),
                ranks=(one.rank, two.rank),
                details={"tensors": mixed[:8]},
            )
    return None


def _split_names(rank: RankTrace, model: Ranks) -> set[str]:
    """Parameters that are split among ranks of this one's model."""
    found: set[str] = set()
    for event in rank.events("placed"):
        splits, names, of = (event.fields.get(key) for key in ("splits", "names", "of"))
        if not (isinstance(splits, list) and isinstance(names, list) and isinstance(of, list)):
            continue
        told = lines_told(splits)
        within = [n for n, (_, along) in enumerate(told) if set(along) <= set(model)]
        for name, one in zip(names, of, strict=False):
            if len(told) == len(splits) and isinstance(one, list) and any(n in one for n in within):
                found.add(str(name))
    return found
