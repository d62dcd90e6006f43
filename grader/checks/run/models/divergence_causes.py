"""What made replicas differ: the line that a second look saw, joined with what the text does on some ranks only.

Decides nothing: that replicas differ is GRAD007's to say.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from grader.checks.evidence import Evidence
from grader.checks.phrases import at, first_known, place, ranks, told_once
from grader.checks.run.endings.early_leavers import skipped_step
from grader.checks.run.models.first_difference import WEIGHTS, FirstDifference, Manner
from grader.checks.run.models.line_changes import first_difference
from grader.checks.run.optimisation.learning_rates import same
from grader.checks.run.optimisation.step_moments import first_apart
from grader.checks.source.causes import fresh_models, lines, stands_at
from grader.checks.source.gradients.averages_by_hand import cause_by_hand
from grader.checks.source.models.replica_repairs import copied_before_wrap
from grader.checks.source.models.unsent_weights import init_sync_off, seeds_by_rank, sent_weights, to_send
from grader.checks.source.models.weight_changes import BEFORE_THE_WRAP, changed_apart
from grader.checks.source.optimisation.optimizer_changes import lone_optimizer_changes
from grader.checks.source.optimisation.rate_causes import ONE_RATE, options_of_the_rank, rates_apart
from grader.checks.source.ranks.deciding_tests import decided_alone, deciding_test, told_to_all
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import name_of
from grader.checks.source.values.unread_iterators import SENDING, unread_exchange
from grader.model.call_site import Site
from grader.model.finding import Location
from grader.model.fix import Fix

_AFTER_SENDING = (
    "Have all ranks do the same to their weights from there on: send rank 0's weights after the last change to them "
    "that is not a step, and let every gradient be averaged when the optimizer steps."
)
_LATER = "what one rank changes afterwards for itself stays different for ever"


@dataclass(frozen=True, slots=True)
class DriftCause:
    """What made the weights differ: as a sentence, what to write, and the lines that did it, with that of the wrap."""

    why: str
    hint: str
    where: tuple[Location, ...]
    fix: Fix | None = None


def divergence_cause(evidence: Evidence) -> DriftCause:
    """Seen line by line; else read in the text: what changes weights, or without a wrapper, where they were made."""
    script = evidence.script
    wrap = first_known([w.site for r in evidence.trace.trainers for w in r.wraps])
    hint = BEFORE_THE_WRAP if wrap is not None else to_send(script)
    changed = lines(script, changed_apart(script))
    seen = first_difference(evidence)
    stepped = _rates_apart(evidence) or (
        _options_apart(script, seen) if seen is not None else _left_out(evidence)
    )
    if stepped is not None:
        return stepped
    own = next(iter(lone_optimizer_changes(script)), None)
    if own is not None and (_by_the_step(script, seen) if seen is not None else not changed):
        begun = f"{seen.sentence} " if seen is not None else ""
        steps = seen.where(script) if seen is not None else ()
        where = told_once((*lines(script, [own.node, own.test]), *steps))
        return DriftCause(f"{begun}{script.at(own.node)} {own.says}", own.hint, where)
    if seen is not None and seen.what == WEIGHTS:
        where = told_once((*seen.where(script), *changed, *place(wrap)))
        copied = copied_before_wrap(script, seen.change.site) if seen.manner is Manner.OTHERWISE else None
        if copied is not None:
            return DriftCause(seen.sentence, copied[1], told_once((*lines(script, copied[:1]), *where)))
        moved = _above_the_wrap(script, where, wrap) if wrap is not None else ""
        why = f"{seen.sentence} {seen.decided_alone(script)}".rstrip()
        return DriftCause(why, moved or seen.out_of_test(script) or seen.hint(script) or hint, where)
    unsent = unread_exchange(script, SENDING) if wrap is None and not changed else None
    by_hand = (unsent or cause_by_hand(script)) if wrap is None and not changed else None
    if by_hand is not None:
        return DriftCause(by_hand.says, by_hand.hint, lines(script, by_hand.nodes), by_hand.fix)
    sent = sent_weights(script) if wrap is None and not changed else []
    if sent:
        why = f"{script.at(sent[0])} made the replicas equal once; {_LATER}."
        return DriftCause(why, _AFTER_SENDING, lines(script, sent[:1]))
    if wrap is None:
        read = changed or lines(script, fresh_models(script))
        made = f" by {_named(read)}" if read else ""
        why = f"Nothing keeps the replicas equal that were made{made}: no wrapper sends rank 0's weights to all."
        seeds = [] if changed else seeds_by_rank(script)
        if seeds:
            why += f" {script.at(seeds[0])} seeds each rank with another number, {script.quote(seeds[0])}."
        return DriftCause(why, hint, (*lines(script, seeds), *read))
    off = init_sync_off(script)
    if off is not None:
        return DriftCause(off.says, off.hint, lines(script, off.nodes), off.fix)
    later = _LATER
    if changed:
        later = f"{_named(changed)} changes weights after that, on some ranks or with numbers of their own"
    why = f"{at(wrap, 'DDP')} made the replicas equal once; {later}."
    return DriftCause(why, hint, told_once((*changed, *place(wrap))))


def _rates_apart(evidence: Evidence) -> DriftCause | None:
    """Ranks step with different learning rates: which, and what in the text makes them so."""
    first, *others = active = evidence.trace.trainers
    together = first_apart(active)
    for other in others:
        for a, b in zip(first.steps[:together], other.steps, strict=False):
            if (a.optimizer, a.kind, len(a.lr)) != (b.optimizer, b.kind, len(b.lr)) or same(a.lr, b.lr):
                continue
            x, y = next((x, y) for x, y in zip(a.lr, b.lr, strict=True) if not same((x,), (y,)))
            made = next(rates_apart(evidence.script), None)
            rates = (
                f"At step {a.n} rank {first.rank} stepped with a learning rate of {x:.4g} and rank {other.rank} with "
                f"{y:.4g}: equal gradients then move the weights differently."
            )
            if made is None:
                return DriftCause(rates, ONE_RATE, told_once(place(a.site)))
            where = told_once((*lines(evidence.script, made.nodes), *place(a.site)))
            return DriftCause(f"{rates} {made.says}", made.hint, where, made.fix)
    return None


def _left_out(evidence: Evidence) -> DriftCause | None:
    """A step that one rank alone left out, and the test by which it did."""
    active, script = evidence.trace.trainers, evidence.script
    left = skipped_step(evidence) if first_apart(active) is not None else None
    site = first_known([step.site for rank in active for step in rank.steps[:1]])
    test = deciding_test(script, site.path, site.line) if site is not None else None
    if left is None:
        return None
    told = f"{ranks(left.ranks)} {left.sentence}."
    if test is None:
        return DriftCause(told, "Let all ranks take a step on a batch, or none of them.", place(site))
    where = told_once((*place(site), script.location(test.test)))
    return DriftCause(f"{told} {decided_alone(script, test)}", told_to_all(script, test), where)


def _options_apart(script: Script, seen: FirstDifference) -> DriftCause | None:
    """Where a step left other weights on each rank: another option of the optimizer that is made of the rank."""
    stepped = any(stands_at(script, s, seen.change.site) for s in script.updates.steps)
    made = next(options_of_the_rank(script), None) if stepped else None
    if seen.what != WEIGHTS or made is None:
        return None
    where = told_once((*lines(script, made.nodes), *seen.where(script)))
    return DriftCause(f"{seen.sentence} {made.says}", made.hint, where, made.fix)


def _by_the_step(script: Script, seen: FirstDifference) -> bool:
    """Whether the ranks' own optimizers left other weights on each, although they stepped together."""
    together = seen.what == WEIGHTS and seen.manner is Manner.OTHERWISE
    return together and any(stands_at(script, step, seen.change.site) for step in script.updates.steps)


def _above_the_wrap(script: Script, where: Sequence[Location], wrap: Site) -> str:
    """Advice to do before the wrap what was done right below it; "" where that can't be moved as it stands."""
    for made in script.training.wraps:
        tree = script.names.tree(made)
        wrapping = tree.statement(made)
        if not stands_at(script, made, wrap) or not isinstance(wrapping, ast.Assign):
            continue
        block = getattr(tree.parent.get(wrapping), "body", [])
        below = block[block.index(wrapping) + 1 :] if wrapping in block else []
        for one in where:
            for later in below:
                if script.location(later).line == one.line and not _uses(later, wrapping.targets):
                    text = script.quote(later)
                    return f"Move {text} above the wrapper at {at(wrap)}: wrapping sends rank 0's weights to all."
    return ""


def _uses(statement: ast.stmt, targets: Sequence[ast.expr]) -> bool:
    named = {name_of(t) for t in targets}
    return not isinstance(statement, ast.Expr) or any(
        isinstance(n, ast.Name | ast.Attribute) and name_of(n) in named for n in ast.walk(statement)
    )


def _named(where: Sequence[Location]) -> str:
    return f"`{where[0].path}:{where[0].line}`"
