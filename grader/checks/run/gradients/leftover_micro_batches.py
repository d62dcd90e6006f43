"""Micro-batches that an epoch's end leaves over: their gradients are in the next epoch's first step.

Seen where a step follows more backward passes than the others do, over batches of two passes of one loader, and only
the first of them found the gradients cleared; where nobody looked, the text has to clear after steps alone.
"""

from __future__ import annotations

import ast
from statistics import mode

from grader.checks.evidence import Evidence
from grader.checks.phrases import at, count, first_known, place, ranks, told_once
from grader.checks.rule import Hit
from grader.checks.source.causes import lines
from grader.checks.source.gradients.accumulation import Accumulation
from grader.checks.source.gradients.accumulation_rounds import counted_rounds
from grader.checks.source.script import Script
from grader.model.finding import Severity
from grader.model.trace import RankTrace, Step


def left_over(evidence: Evidence) -> Hit | None:
    """Gradients of an epoch's last micro-batches in a step of the next one."""
    script, active = evidence.script, evidence.trace.trainers
    found = {rank.rank: late for rank in active if (late := _late(rank))}
    if not active or len(found) < len(active):
        return None
    looked = [s.empty for late in found.values() for s, _ in late if s.empty is not None]
    accumulation = next(iter(script.accumulations.all), None)
    if any(number != 1 for number in looked) or not (looked or _cleared_after_steps(script, accumulation)):
        return None
    rank = active[0]
    late, usual = found[rank.rank], _usual(rank)
    step, over = late[0]
    site = first_known([s.site for s, _ in late])
    guards = [accumulation.guard] if accumulation is not None and accumulation.guard is not None else []
    return Hit(
        message=f"{ranks(found)} stepped after {usual} backward passes each, and after {step.backwards} in the first "
        f"step of an epoch, {count(len(late), 'time')}: {at(site, 'the training loop')} leaves "
        f"{count(over, 'micro-batch', 'micro-batches')} over when the loader ends, and nothing clears "
        f"{'its' if over == 1 else 'their'} gradients. They are added to the next epoch's first step, and after the "
        "last epoch they are lost.",
        hint=_hint(script, accumulation),
        where=told_once((*lines(script, guards), *place(site))),
        ranks=tuple(found),
        details={"steps": [s.n for s, _ in late][:8], "left_over": over, "backwards_per_step": usual},
        severity=Severity.HINT,
    )


def _late(rank: RankTrace) -> list[tuple[Step, int]]:
    """Steps with more backward passes than usual over batches of two passes, and how many are of the earlier one."""
    usual = _usual(rank)
    if usual < 2 or len({s.optimizer for s in rank.steps}) > 1:
        return []
    more = {s.n: s for s in rank.steps if (s.backwards or 0) > usual}
    drawn: dict[int, dict[tuple[int, int], int]] = {n: {} for n in more}
    for batch in rank.batches:
        if batch.step in drawn:
            passes = drawn[batch.step]
            passes[batch.loader, batch.pass_] = passes.get((batch.loader, batch.pass_), 0) + 1
    found = []
    for n, passes in drawn.items():
        over = (more[n].backwards or 0) - usual
        if any(
            number == over and passes.get((loader, one + 1)) == usual
            for (loader, one), number in passes.items()
        ):
            found.append((more[n], over))
    return found


def _usual(rank: RankTrace) -> int:
    numbers = [s.backwards for s in rank.steps if s.backwards is not None]
    return mode(numbers) if numbers else 0


def _cleared_after_steps(script: Script, found: Accumulation | None) -> bool:
    """Whether all clearing is done in the branch that steps."""
    clears = script.updates.clears
    if found is None or found.guard is None or not clears:
        return False
    tree = script.names.tree(found.guard)
    return all(clear in tree.parent and tree.inside(clear, found.guard) for clear in clears)


def _hint(script: Script, found: Accumulation | None) -> str:
    otherwise = "or clear the gradients before each epoch, to leave these samples out."
    rounds = counted_rounds(found.loop, script.names) if found is not None else None
    if found is None or found.guard is None or rounds is None:
        return f"Step on what is left when the loop is over, divided by its own number of micro-batches; {otherwise}"
    test: ast.AST = found.guard.test
    if isinstance(test, ast.Name):
        made = script.values.origins(test)
        test = made[0] if len(made) == 1 else test
    return (
        f"Let the last round of the loop step as well, `{ast.unparse(test)} or {rounds.last}`, and divide its losses "
        f"by the number of micro-batches that are left; {otherwise}"
    )
