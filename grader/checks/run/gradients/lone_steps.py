"""Steps that no other rank has a part in: one rank trains alone, or all of them do the very same work.

Says what is wrong there; that nothing was averaged is for the rule to find.
"""

from __future__ import annotations

from collections import Counter

from grader.checks.evidence import Evidence
from grader.checks.phrases import at, count, every, first_known, place, ranks
from grader.checks.rule import Hit
from grader.checks.run.endings.end_counts import gradients_computed
from grader.checks.run.gradients.audited_shares import of_other_samples, without_classes
from grader.checks.run.gradients.average_shares import average_shares
from grader.checks.run.gradients.exchanges import MEETINGS, wrapped_alone
from grader.checks.run.gradients.muted_ranks import muted_ranks
from grader.checks.run.gradients.own_gradients import averaged_steps, averaging_ranks
from grader.checks.run.models.equal_sums import contains, equal
from grader.checks.run.models.model_parts import mixed_parts
from grader.checks.run.models.replica_comparison import (
    Comparison,
    compare_finals,
    compare_parameters,
    replicas_differ,
)
from grader.checks.source.causes import lines, scaled_by_rank
from grader.checks.source.collectives.aliased_slots import slots_at
from grader.checks.source.gradients.averages_by_hand import cause_by_hand
from grader.checks.source.gradients.withheld_exchanges import withheld
from grader.checks.source.script import Script
from grader.model.audited_step import FEW
from grader.model.call_site import Site
from grader.model.trace import RankTrace, Step

_SELDOM = 0.5
"""Gradients for each step below which a rank does not compute those that it steps on."""


def alone(evidence: Evidence, only: RankTrace) -> Hit:
    """One rank took all steps."""
    site = first_known([s.site for s in only.steps])
    return Hit(
        message=(
            f"Rank {only.rank} took all {count(len(only.steps), 'optimizer step')}; the other "
            f"{count(evidence.trace.world_size - 1, 'rank')} took none, so nothing was averaged. "
            f"{at(site, 'The optimizer')} is reached by one rank alone: the others' devices were idle."
        ),
        hint="Let every rank run the training loop on its share of the data; keep only printing and saving to rank 0.",
        where=place(site),
        ranks=(only.rank,),
        details={"steps_by_rank": {str(r.rank): len(r.steps) for r in evidence.trace.ranks}},
    )


def beside_equal_gradients(evidence: Evidence, found: Comparison, held: str) -> Hit | None:
    """What is wrong with averages although all gradients that were compared were equal."""
    return (
        _scored_alone(evidence)
        or mixed_parts(evidence)
        or _without_a_part(evidence)
        or _held_back(evidence)
        or _between_the_looks(evidence, found, held)
    )


def _held_back(evidence: Evidence) -> Hit | None:
    """Steps that followed nothing but backward passes without averaging, after which the replicas are apart."""
    active = evidence.trace.trainers
    found = compare_parameters(evidence.trace)
    held = [
        [s for s in r.steps if s.synced is False and s.backwards and s.backwards == s.unsynced]
        for r in active
    ]
    if found.difference is None or not all(held):
        return None
    first = held[0][0]
    apart = found.difference.step
    compared = [p.n for r in active for p in r.params if p.n < apart]
    if any(steps[0].n != first.n for steps in held) or not max(compared, default=-1) < first.n <= apart:
        return None  # they were equal after such a step: something else brought its gradients together
    told = list(withheld(evidence.script))
    name, (x, y) = found.difference.names[0], (sums[0] for sums in found.difference.sums)
    return Hit(
        message=(
            f"{ranks(r.rank for r in active)} took {len(held[0]):,} of {count(len(active[0].steps), 'step')} after "
            f"backward passes that all ran inside `no_sync()`, the first of them step {first.n}: each stepped with its "
            f"own gradients. After step {apart} `{name}` adds up to {x or 0:.6g} on one rank, {y or 0:.6g} on another."
            + "".join(f" {evidence.script.at(t.node)} {t.says}." for t in told[:1])
        ),
        hint=told[0].hint
        if told
        else "Leave `no_sync()` before the last backward pass of each step, the last one of an epoch among them.",
        where=(*(evidence.script.location(t.node) for t in told), *place(first.site)),
        ranks=tuple(r.rank for r in active),
        details={"steps": [s.n for s in held[0][:8]], "apart": apart},
        fix=told[0].fix if told else None,
    )


def _scored_alone(evidence: Evidence) -> Hit | None:
    """One rank took steps that no other did, on a model of its own, and that model is what was scored."""
    active = evidence.trace.trainers
    scored = evidence.evaluation.sums if evidence.evaluation is not None else ()
    holders = [r for r in active if any(contains(scored, f.sums) for f in r.finals if f.sums)]
    if len(active) < 2 or len(holders) != 1:
        return None
    [holder] = holders
    others = [r for r in active if r is not holder]
    shared = {step.optimizer for r in others for step in r.steps}
    own = [step for step in holder.steps if step.optimizer not in shared]
    if not own:
        return None
    site = first_known([s.site for s in own]) or first_known([s.site for s in holder.saves])
    return Hit(
        message=(
            f"Rank {holder.rank} took {count(len(own), 'step')} on a model that no other rank trains, and that model "
            f"is what was scored. Of the {count(len(others[0].steps), 'step')} that the ranks took together nothing is "
            "in it but perhaps its start."
        ),
        hint="Train the model that you save on all ranks, through the wrapper, and let one of them save it.",
        where=place(site),
        ranks=(holder.rank,),
        details={"steps_by_rank": {str(r.rank): len(r.steps) for r in evidence.trace.ranks}},
    )


def _without_a_part(evidence: Evidence) -> Hit | None:
    """All step on the same gradients, in which some ranks' own have no part, or which some hardly ever compute."""
    ranks_ = averaging_ranks(evidence)
    computed = {r.rank: gradients_computed(r) for r in ranks_ if r.ended}
    idle = [r for r in ranks_ if computed.get(r.rank, len(r.steps)) < _SELDOM * len(r.steps)]
    if idle and len(idle) < len(ranks_):
        told = f"For its {count(len(idle[0].steps), 'step')} {ranks([idle[0].rank]).lower()} computed " + (
            f"{count(computed[idle[0].rank], 'gradient')}" if computed[idle[0].rank] else "no gradient"
        )
        busy = next(r for r in ranks_ if r not in idle)
        return _told_without(
            evidence.script,
            ranks_,
            idle,
            f"{told}; rank {busy.rank} computed {computed[busy.rank]:,}. What all step on is what others computed.",
        )
    same = [
        x
        for x in averaged_steps(ranks_)
        if all(equal(s.grads or (), x.steps[0].grads or ()) for s in x.steps)
    ]
    # One optimizer after the other may step on other parameters: those of most steps tell.
    often = Counter(x.steps[0].grad_names for x in same).most_common(1)
    shares = average_shares([x.steps for x in same if x.steps[0].grad_names == often[0][0]]) or ()
    samples = [sum(s.samples for s in r.steps) for r in ranks_]
    fair = [min(1 / len(ranks_), n / sum(samples) if all(samples) else 1) for n in samples]
    out = [r for r, part, whole in zip(ranks_, shares, fair, strict=False) if part < FEW * whole]
    if not out:
        muted = _muted(evidence, ranks_, [x.steps for x in same])
        if muted or not same:
            return muted
        exchange = _exchange(ranks_[0])[1]
        return of_other_samples(evidence, ranks_, exchange) or without_classes(evidence, exchange)
    return _told_without(
        evidence.script,
        ranks_,
        out,
        f"At {count(len(same), 'step')} that were looked at, all ranks stepped on the same gradients, and in those "
        f"what {ranks(r.rank for r in out).lower()} had computed has a share of "
        f"{abs(max(part for r, part in zip(ranks_, shares, strict=True) if r in out)):.0%}; in an average of "
        f"{len(ranks_)} it is {1 / len(ranks_):.0%}.",
    )


def _muted(evidence: Evidence, all_ranks: tuple[RankTrace, ...], looks: list[tuple[Step, ...]]) -> Hit | None:
    """All have a part in what is stepped on, and what some computed is next to nothing."""
    found = muted_ranks(looks)
    if not found or len(found) == len(all_ranks):
        return None
    out, loudest = [all_ranks[one.position] for one in found], all_ranks[found[0].loudest]
    share = max(one.share for one in found)
    little = f"at most {share:.1g} times as large as those" if share else "zero, unlike those"
    made = scaled_by_rank(evidence.script)
    line = (
        f" {evidence.script.at(made[0])} makes what goes backward depend on the rank: "
        f"{evidence.script.quote(made[0])}."
        if made
        else ""
    )
    return Hit(
        message=f"At {found[0].num_looks:,} of {count(len(looks), 'step')} that were looked at, the gradients that "
        f"{ranks(r.rank for r in out).lower()} computed were {little} of rank {loudest.rank}, in each parameter "
        f"and for samples like its own.{line} The average is right, and hardly anything of {_whose(out)} is in it: "
        f"practically rank {loudest.rank} trains the network by itself.",
        hint="Let the loss of every rank go backward as it is, the mean over its own batch, with nothing that makes it "
        "or its gradient smaller on some ranks; what only one rank shall report is chosen behind `backward()`.",
        where=lines(evidence.script, made[:1]) or place(first_known([s.site for s in out[0].steps])),
        ranks=tuple(r.rank for r in out),
        details={"share": share, "looks": len(looks), "steps": found[0].num_looks},
    )


def _whose(out: list[RankTrace]) -> str:
    return "its work" if len(out) == 1 else "their work"


def _told_without(script: Script, all_ranks: tuple[RankTrace, ...], out: list[RankTrace], seen: str) -> Hit:
    name, site = _exchange(all_ranks[0])
    sent = f" {at(site)} exchanges them with `{name}`." if name and place(site) else ""
    slots = slots_at(script, site)
    return Hit(
        message=f"{seen}{sent} The work of {ranks(r.rank for r in out).lower()} is thrown away.",
        hint=slots.cause(script)
        if slots is not None
        else "Let every rank compute the gradients of its own batch, and average them: "
        "`dist.all_reduce(parameter.grad)`, then `parameter.grad /= dist.get_world_size()`; or wrap the model in "
        "`DistributedDataParallel`, which does that in `backward()`.",
        fix=slots.fix if slots is not None else None,
        where=(*lines(script, [slots.made] if slots is not None else []), *place(site))
        or place(first_known([s.site for s in out[0].steps])),
        ranks=tuple(r.rank for r in out),
        details={"gradients_by_rank": {str(r.rank): gradients_computed(r) for r in all_ranks}},
    )


def _exchange(rank: RankTrace) -> tuple[str, Site | None]:
    """What is called for each step, of which not each call is told: before the first and after it."""
    first = rank.steps[0].t
    told = [c for c in rank.collectives if c.name not in MEETINGS and c.site]
    later = {(c.name, c.site) for c in told if c.t > first and c.n >= len(rank.steps) // 2}
    return next(((c.name, c.site) for c in told if c.t < first and (c.name, c.site) in later), ("", None))


def _between_the_looks(evidence: Evidence, found: Comparison, held: str) -> Hit | None:
    """An average by hand that the text shows to miss steps, where replicas are apart though what was seen was equal."""
    active = evidence.trace.trainers
    ended = (compare_finals(*pair) for pair in evidence.ledger.layout.pairs(active))
    if any(r.wraps for r in active) or not (replicas_differ(evidence.trace) or any(ended)):
        return None
    cause = cause_by_hand(evidence.script)
    if cause is None:
        return None
    return Hit(
        message=f"The ranks ended with different weights, although their {held} were equal at "
        f"{every(found.num_steps, 'step')} compared. {cause.says}",
        hint=cause.hint,
        where=lines(evidence.script, cause.nodes),
        ranks=tuple(r.rank for r in active),
        fix=cause.fix,
    )


def twins(active: tuple[RankTrace, ...], found: Comparison, held: str) -> Hit:
    """Every rank took the same steps on the same samples, and nothing went from one to another."""
    wraps = [wrap for rank in active for wrap in wrapped_alone(rank)]
    site = first_known([wrap.site for wrap in wraps] or [step.site for step in active[0].steps])
    wrapper = "each wrapper's group is that rank alone" if wraps else "no wrapper"
    line = (
        f"{at(site, 'The wrapper')} is given such a group"
        if wraps
        else f"{at(site, 'The update')} is the step that one rank alone would take"
    )
    mend = (
        "Leave `process_group=` out of the wrapper: it then averages over all ranks. Train through it"
        if wraps
        else "Wrap the model once it is on its device, `model = DistributedDataParallel(model)`, train through it"
    )
    return Hit(
        message=(
            f"{ranks(r.rank for r in active)} held equal {held} at {count(found.num_steps, 'compared step')}, but "
            f"nothing went from one to another: {wrapper}, and fewer collectives than optimizer steps. They were equal "
            f"because every rank did the very same work. {line}, and with different samples each would train a model "
            "of its own."
        ),
        hint=f"{mend}, and give each rank samples of its own.",
        where=place(site),
        ranks=tuple(r.rank for r in active),
        details={"steps_compared": found.num_steps, "steps_different": 0},
    )
