"""Gradients that were cleared at the wrong time, as a run shows it: too early, never, or those of some layers alone."""

from __future__ import annotations

from collections.abc import Sequence

from grader.checks.evidence import Evidence
from grader.checks.phrases import at, count, first_known, listed, place, ranks, told_once
from grader.checks.rule import Hit
from grader.checks.source.calls.uncalled_methods import parentheses, uncalled
from grader.checks.source.causes import lines
from grader.checks.source.gradients.cleared_gradients import cleared_in_part, steps_on_cleared
from grader.checks.source.script import Script
from grader.model.finding import Severity
from grader.model.trace import RankTrace, Step

Looks = Sequence[tuple[RankTrace, Step]]
"""Steps that were looked at, with their ranks."""

_FEWEST = 3
_ONCE = "`optimizer.zero_grad()` once per step, before `backward` or right after `optimizer.step()`"


def stepped_on_nothing(evidence: Evidence) -> Looks:
    """Steps that found cleared what backward passes had given, where most that were looked at are such.

    What backward passes gave is not known on devices: there the text has to say that it was cleared.
    """
    read = any(True for _ in steps_on_cleared(evidence.script))
    looked = [
        (rank, step)
        for rank in evidence.trace.trainers
        for step in rank.steps
        if step.grads and step.backwards and (any(step.own) if step.own else read)
    ]
    bare = [(rank, step) for rank, step in looked if not any(step.grads or ()) and not _moved(rank, step)]
    return bare if len(bare) >= max(_FEWEST, len(looked) / 2) else ()


def _moved(rank: RankTrace, step: Step) -> bool:
    """Whether a step without any gradient changed weights all the same: its optimizer has gradients of its own."""
    held = {params.n: params.sums for params in rank.params if params.n in (step.n - 1, step.n)}
    return all(g is None for g in step.grads or ()) and len(set(held.values())) > 1


def cleared_early(script: Script, bare: Looks) -> Hit:
    """Steps on nothing, told as a finding."""
    rank, step = bare[0]
    read = next(iter(steps_on_cleared(script)), None)
    cleared = [read.clear, read.step] if read is not None else cleared_in_part(script)
    names = listed([f"`{name}`" for name in step.grad_names], 2)
    num = sum(r is rank for r, _ in bare)
    return Hit(
        message=f"{ranks(r.rank for r, _ in bare)} stepped on cleared gradients: backward passes had given some to "
        f"{names}, and {at(step.site, 'the optimizer')} found none of them, at {count(num, 'step')} that "
        f"{'was' if num == 1 else 'were'} looked at. No step learns anything from its batch."
        + (f" {read.says}" if read is not None else ""),
        hint=read.hint
        if read is not None
        else f"Clear nothing between `backward` and the step: call {_ONCE}.",
        where=told_once((*lines(script, cleared), *place(step.site))),
        ranks=tuple(r.rank for r, _ in bare),
        details={"steps": [s.n for r, s in bare if r is rank][:8]},
        severity=Severity.ERROR,
        fix=read.fix if read is not None else None,
    )


def never_cleared(script: Script, kept: Looks) -> Hit:
    """Gradients that piled up, told as a finding: those of all parameters, or of some while others were cleared."""
    rank = kept[0][0]
    own = [s for r, s in kept if r is rank]
    site = first_known([s.site for _, s in kept])
    names = list(dict.fromkeys(name for _, s in kept for name in s.kept))
    cleared = any(
        gradient and name not in s.kept
        for _, s in kept
        for name, gradient in zip(s.grad_names, s.grads or (), strict=False)
    )
    what, whose, hint = "", f"all of rank {rank.rank}'s gradients", f"Call {_ONCE}."
    named = [] if cleared else uncalled(script, "zero_grad")
    hint = parentheses(script, named[0]) if named else hint
    clears = cleared_in_part(script) if cleared else [*named]
    if cleared:
        what, whose = "all ", f"those of {listed([f'`{name}`' for name in names], 4)}"
        some = f", instead of clearing some at {script.at(clears[0])}" if clears else ""
        hint = f"Clear all that the optimizer steps{some}: call {_ONCE}."
    sizes = [abs(next((g for g in s.grads if g is not None), 0.0)) for s in own if s.grads]
    return Hit(
        message=f"{ranks(r.rank for r, _ in kept)} stepped without clearing {what}gradients: after "
        f"{count(len(own), 'step')} of the first ones, the next backward pass found {whose} still there and added "
        f"to them. {at(site, 'The optimizer')} steps with sums over all batches so far.",
        hint=hint,
        where=told_once((*lines(script, clears), *place(site))),
        ranks=tuple(r.rank for r, _ in kept),
        details={"steps": [s.n for s in own[:8]], "sizes_of_a_gradient": sizes[:8], "names": names},
        severity=Severity.WARNING if cleared else Severity.ERROR,
    )
