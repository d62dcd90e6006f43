"""Steps at which ranks held different gradients, as a finding: what was seen, what of the text made it so.

That they may differ by right is asked before; GRAD001 does.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from grader.checks.evidence import Evidence
from grader.checks.phrases import at, count, first_known, place, ranks, told_once
from grader.checks.rule import Hit
from grader.checks.run.models.first_difference import FirstDifference
from grader.checks.run.models.line_changes import first_difference
from grader.checks.run.models.replica_comparison import Comparison, Difference, compare_finals
from grader.checks.run.models.unwrapped_models import unwrapped_model
from grader.checks.source.causes import CauseInText, lines
from grader.checks.source.gradients.average_fixes import of_the_step
from grader.checks.source.gradients.averages_by_hand import by_itself, cause_by_hand
from grader.checks.source.gradients.backward_causes import second_backward
from grader.checks.source.gradients.causes import (
    WRAP,
    averaged_in_vain,
    exchange_replaced,
    exchanging_again,
    left_out,
)
from grader.checks.source.gradients.steps_in_hooks import step_in_hook
from grader.checks.source.gradients.withheld_exchanges import withheld
from grader.checks.source.script import Script
from grader.model.finding import SEEN_RIGHT
from grader.model.fix import Fix
from grader.model.trace import RankTrace, Step

_LEAVE_NO_SYNC = (
    "Leave `no_sync()` before the last backward pass of each step, so that this one averages the gradients."
)
_THROUGH = "Call the wrapped model itself in the training loop, and wrap all that the optimizer steps."
_BEHIND_BACKWARD = "Step behind `backward`, when DDP has averaged, and not in a hook, which runs before that."
_AFTER_THE_WRAPPER = (
    "Every forward pass went through the wrapper, so DDP has averaged when `backward` returns: look for what gives a "
    "parameter a gradient of the rank's own beside that, such as a hook on it, a second `backward`, a tensor that is "
    "no parameter of the wrapped model, or a line that changes `grad` before the step."
)
_NEARLY_ALL = 0.8
"""Share of a model's tensors that are apart where it has become another one: sums of a few may be equal by chance."""


@dataclass(frozen=True, slots=True)
class _Advice:
    """What to write, with the lines of the text that it is about; `cause`: what the text does, where it shows that."""

    hint: str
    nodes: tuple[ast.AST, ...] = ()
    fix: Fix | None = None
    cause: CauseInText | None = None


def gradient_difference(evidence: Evidence, found: Comparison, held: str) -> Hit:
    """The finding.

    Args:
        evidence: all evidence of the run.
        found: the comparison that has a difference.
        held: what was compared, `gradients` or, where updates are made by hand, `weights`.
    """
    script, active, difference = evidence.script, evidence.trace.trainers, found.difference
    assert difference is not None
    a, b = difference.ranks
    step = next((s for r in active if r.rank == a for s in r.steps if s.n == difference.step), None)
    site = first_known([*([step.site] if step else []), *(s.site for s in active[0].steps)])
    seen = first_difference(evidence)
    wrapped = any(w.kind in ("ddp", "fabric", "accelerate") for r in active for w in r.wraps)
    # Wrapped and called through its wrapper: what is wrong came after that.
    through = held == "gradients" and wrapped and step is not None and bool(step.wraps and step.synced)
    advice = (
        _wrapped_advice(script, active, step, difference, seen, through=through)
        if wrapped
        else _unwrapped_advice(script, seen)
    )
    x, y = difference.sums[0][0], difference.sums[1][0]
    of = f"`{difference.names[0]}`" + ("'s gradient" if held == "gradients" else "")
    pair = f"the sum of {of} was {_number(x)} on rank {a} and {_number(y)} on rank {b}"
    steps = "steps with them" if held == "gradients" else "is made of a rank's own gradients"
    cause = advice.cause
    return Hit(
        message=(
            f"{ranks((a, *found.ranks))} held different {held} {'at' if held == 'gradients' else 'after'} "
            f"{found.num_different:,} of {count(found.num_steps, 'compared step')}: at step {difference.step} {pair}. "
            f"{at(site, 'The update')} {steps}, so {_outcome(active, difference)}."
            + (f" {cause.says if cause else seen.sentence if seen else ''}").rstrip()
        ),
        hint=advice.hint,
        fix=advice.fix,
        where=told_once(
            (*lines(script, advice.nodes), *(seen.where(script) if seen else ()), *place(site)),
        )
        or lines(script, script.calls("torch.autograd.grad", "torch.func.grad")[:1]),
        ranks=(a, *found.ranks),
        details={
            "first_step": difference.step,
            "tensors": list(difference.names[:8]),
            f"sums_rank_{a}": list(difference.sums[0][:8]),
            f"sums_rank_{b}": list(difference.sums[1][:8]),
            "steps_compared": found.num_steps,
            "steps_different": found.num_different,
            **({SEEN_RIGHT: ["GRAD002", "GRAD003"]} if through else {}),
        },
    )


def _outcome(active: Sequence[RankTrace], difference: Difference) -> str:
    """What came of it: another model on each rank, or other tensors in models that are equal in the rest."""
    a, b = (next(r for r in active if r.rank == number) for number in difference.ranks)
    apart = compare_finals(a, b)
    held = sum(len(f.names) for f in a.finals)
    if not apart or len(apart) >= _NEARLY_ALL * held:
        return "each rank trains a model of its own"
    return f"{len(apart)} of the model's {count(held, 'tensor')} became each rank's own, and the others stayed equal"


def _wrapped_advice(
    script: Script,
    active: Sequence[RankTrace],
    step: Step | None,
    difference: Difference,
    seen: FirstDifference | None,
    *,
    through: bool,
) -> _Advice:
    """Of a model in a wrapper; `through`: its forward passes went through it."""
    unsynced = any(s.synced is False for r in active for s in r.steps)
    cause = unwrapped_model(script, active[0], step, difference.names)
    if cause is None and through:
        cause = step_in_hook(script)
    if cause is None and step is not None and (step.backwards or 0) > 1 and not unsynced:
        cause = second_backward(script)
    told = [] if script.averaging.all else list(withheld(script))
    replaced = list(exchange_replaced(script))
    nodes = (*(cause.nodes if cause else ()), *(t.node for t in told), *replaced)
    by_line = seen.hint(script) if seen is not None else ""
    if cause is not None:
        return _Advice(cause.hint, nodes, cause.fix, cause)
    if told:
        return _Advice(told[0].hint, nodes)
    if unsynced:
        return _Advice(_LEAVE_NO_SYNC, nodes)
    if replaced:
        return _Advice(exchanging_again(script, replaced[0]), nodes)
    if by_line:
        return _Advice(by_line, nodes)
    if step is not None and step.within:
        return _Advice(_BEHIND_BACKWARD, nodes)
    return _Advice(_AFTER_THE_WRAPPER if through else _THROUGH, nodes)


def _unwrapped_advice(script: Script, seen: FirstDifference | None) -> _Advice:
    """Of a model in no wrapper: what the script does itself, and in vain."""
    cause = cause_by_hand(script) or step_in_hook(script)
    in_vain = list(averaged_in_vain(script))
    picked = list(left_out(script)) if seen is not None and seen.num_equal else []
    nodes = (*(cause.nodes if cause else ()), *in_vain, *picked)
    by_line = seen.hint(script) if seen is not None else ""
    if cause is not None:
        return _Advice(cause.hint, nodes, cause.fix, cause)
    if by_line and seen is not None and (seen.num_equal or not in_vain):
        return _Advice(by_line, nodes)
    if in_vain:
        hint, fix = of_the_step(script, in_vain)
        return _Advice(hint, nodes, fix)
    return _Advice(by_itself(script) if script.averaging.all else WRAP, nodes)


def _number(value: float | None) -> str:
    return "missing" if value is None else f"{value:.6g}"
