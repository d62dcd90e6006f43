"""Sums of gradients over the ranks that each micro-batch of an accumulation takes anew, of all that is there so far.

What an earlier micro-batch left is the sum of all ranks already. A mean of equal numbers changes nothing; a sum makes
them as many times larger as there are ranks, while those of the last micro-batch count once.
"""

from __future__ import annotations

import ast

from grader.checks.source.causes import CauseInText
from grader.checks.source.gradients.accumulation import Accumulation
from grader.checks.source.gradients.averaging import Average
from grader.checks.source.gradients.clipping import divisions
from grader.checks.source.gradients.updates import reads_gradient
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import FUNCTIONS, ancestors

_HOOK = "register_post_accumulate_grad_hook"


def summed_again(script: Script, average: Average) -> CauseInText | None:
    """Such a sum, in a hook of each backward pass or in the loop over micro-batches; None where it is taken once."""
    if average.mean or not script.accumulations.all or not reads_gradient(average.tensor):
        return None
    tree = script.names.tree(average.call)
    above = list(ancestors(tree.parent, average.call))
    body = next((n for n in above if isinstance(n, (ast.Lambda, *FUNCTIONS))), None)
    hooks = [c for c in script.called(_HOOK) if c.args and body in script.values.origins(c.args[0])]
    if body is not None and hooks:
        tested = any(isinstance(n, ast.If | ast.IfExp) for n in above[: above.index(body)])
        if tested or any(
            tree.inside(node, body) for node, _ in divisions(script) if script.names.tree(node) is tree
        ):
            return None
        return _repeated(script, average, script.accumulations.all[0], hooks[0])
    for found in script.accumulations.all:
        divided = script.updates.entries(found.loop, [node for node, _ in divisions(script)])
        made = script.updates.entries(found.loop, [average.call])
        outer = script.names.tree(found.loop)
        if not made or divided or outer.inside(found.step, found.loop) or script.training.wraps:
            continue
        if not any(
            isinstance(n, ast.If) and outer.inside(n, found.loop) for n in ancestors(outer.parent, made[0])
        ):
            return _repeated(script, average, found, None)
    return None


def _repeated(script: Script, average: Average, found: Accumulation, hook: ast.Call | None) -> CauseInText:
    call = average.call
    often = "in a hook that each backward pass runs" if hook is not None else "in each micro-batch"
    out = f"Leave the hook of {script.at(hook)} out, and add up" if hook is not None else "Add up"
    quotient = next((script.names.tree(n).statement(n) for n, _ in divisions(script)), None)
    later = (
        f", in the place of {script.quote(quotient)} at {script.at(quotient)}" if quotient is not None else ""
    )
    return CauseInText(
        (call, found.backward),
        f"{script.at(call)} adds up {script.quote(average.tensor)} over the ranks {often}, and "
        f"{script.at(found.backward)} goes backward several times before the step of {script.at(found.step)}. What an "
        "earlier micro-batch left is the sum of all ranks already and is added up again: it counts as many times as "
        "there are ranks, the last micro-batch once.",
        f"{out} once, between the last backward pass and {script.quote(found.step)}. Or make a mean of it there and "
        f"then, divided by the number of ranks right after the sum{later}: a mean of what is equal leaves it as it is.",
    )
