"""Some parameters got no gradient, and DDP waited for them.

## What happened
A forward pass began while the previous step's gradients had not all been averaged: "Expected to have finished reduction
in the prior iteration".

## Why
The wrapper counts on a gradient for every parameter that required one when it was wrapped. A layer that the loss does
not reach, a branch that some steps skip, or a layer frozen after wrapping leaves it waiting.

## Mend it
Freeze before wrapping. Remove layers that nothing uses. Where a step really skips layers, wrap with
`find_unused_parameters=True`.
"""

from __future__ import annotations

import ast
import re

from grader.checks.phrases import count, listed
from grader.checks.run.endings.failed_run import FailedRun
from grader.checks.run.gradients.unfinished_reductions import without_gradient
from grader.checks.source.calls.arguments import arguments_of
from grader.checks.source.causes import lines
from grader.checks.source.models.changing_models import chosen_by_chance
from grader.model.diagnosis import Diagnosis
from grader.model.finding import Location

ORDER = 20
_WORDS = re.compile(r"Expected to have finished reduction in the prior iteration")


def diagnose(run: FailedRun) -> Diagnosis | None:
    """Speak of unused or frozen parameters; point at a freeze after the wrap where there is one."""
    if run.saying(_WORDS) is None or run.cause is None:
        return None
    lacking = {f.rank: without_gradient(f.message) for f in run.alike}
    indices = lacking[run.cause.rank]
    if len(set(lacking.values())) > 1:
        return _by_rank(run, lacking)
    wraps = run.evidence.rank(run.cause.rank).wraps
    number = f"{count(len(indices), 'parameter tensor')}" if indices else "some parameters"
    of_all = f" of {wraps[-1].num_tensors}" if indices and wraps else ""
    frozen = _frozen_late(run)
    late = " (`{0.path}:{0.line}` freezes parameters after wrapping)".format(frozen[0]) if frozen else ""
    return run.crash(
        title="Parameters of the wrapped model got no gradient",
        what=f"began a new step while {number}{of_all} of the model had got no gradient in the step before{late}",
        why=(
            "The wrapper averages a gradient for every parameter that required one when it was wrapped, so a step that "
            "leaves one out is never finished"
        ),
        hint=(
            "Freeze parameters before wrapping, drop layers that the loss does not use (or add their output to it), "
            "and only where steps really differ wrap with `find_unused_parameters=True`."
        ),
        where=tuple(dict.fromkeys((*frozen, *run.cause.where))),
        details={"parameter_indices": list(indices[:40])},
    )


def _by_rank(run: FailedRun, lacking: dict[int, tuple[int, ...]]) -> Diagnosis:
    """Each rank left out others: whatever decides which layers run decides it for each rank by itself."""
    drawn = lines(run.evidence.script, chosen_by_chance(run.evidence.script))
    told = [f"rank {rank} for {_named(run, rank, indices)}" for rank, indices in lacking.items()]
    by = ", as each rank draws for itself" if drawn else ""
    places = (p for f in run.alike for p in f.where)
    return run.crash(
        title="Other parameters of the wrapped model got no gradient on each rank",
        what=f"began a new step while DDP waited for gradients of the step before, {listed(told)}{by},",
        why=(
            "The wrapper averages a gradient for every parameter that required one when it was wrapped, so a step that "
            "leaves one out is never finished"
        ),
        hint=(
            "Where steps leave out layers on purpose, wrap with `find_unused_parameters=True`: each rank may then "
            "leave out others."
        ),
        where=tuple(dict.fromkeys((*drawn, *places))),
        details={"parameter_indices": {str(rank): list(one[:40]) for rank, one in lacking.items()}},
    )


def _named(run: FailedRun, rank: int, indices: tuple[int, ...]) -> str:
    steps = run.evidence.rank(rank).steps
    names = steps[-1].missing if steps else ()
    if not names:
        return f"the parameters {listed(indices, 6)}"
    more = max(0, len(indices) - len(names))
    return listed([f"`{n}`" for n in names]) + (f" and {more} more" if more else "")


def _frozen_late(run: FailedRun) -> tuple[Location, ...]:
    """Lines that switch gradients off and lie behind the wrap, in the wrap's own file and scope."""
    script = run.evidence.script
    found = []
    for wrap in script.training.wraps:
        tree = script.names.tree(wrap)
        found += [
            script.location(node)
            for node in ast.walk(tree.root)
            if _freezes(node)
            and getattr(node, "lineno", 0) > wrap.lineno
            and tree.function(node) is tree.function(wrap)
        ]
    return tuple(dict.fromkeys(found))[:1]


def _freezes(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        values = arguments_of(node)
        return node.func.attr == "requires_grad_" and any(
            isinstance(v, ast.Constant) and v.value is False for v in values
        )
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and node.value.value is False
        and any(isinstance(t, ast.Attribute) and t.attr == "requires_grad" for t in node.targets)
    )
