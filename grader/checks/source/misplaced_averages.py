"""Averages of gradients by hand that a round makes at the wrong moment: behind the step, or ahead of the backward pass.

Claims nothing where another average of the same round may be the one that the step uses.
"""

from __future__ import annotations

from collections.abc import Iterable

from grader.checks.source.average_fixes import after_backward
from grader.checks.source.causes import CauseInText
from grader.checks.source.gradient_averaging import Average
from grader.checks.source.script import Script
from grader.checks.source.syntax_nodes import start


def misplaced_averages(script: Script) -> Iterable[CauseInText]:
    """All of them, one for each collective."""
    return (found for one in script.averaging.all if (found := misplaced(script, one)) is not None)


def misplaced(script: Script, average: Average) -> CauseInText | None:
    """What is wrong with the moment of an average: the call that makes it, then its collective."""
    order = script.averaging.order(average)
    if order is None or len(order.backwards) != 1 or len(order.steps) != 1:
        return None
    made = script.updates.entries(order.around, [a.call for a in script.averaging.all])
    (backward,), (step,) = order.backwards, order.steps
    tree = script.names.tree(order.around)
    if any(tree.inside(one, entry) for one in made for entry in (backward, step)):
        return None
    at, last = script.at(order.average), script.at(step)
    if start(backward) < start(step) and all(start(step) < start(one) for one in made):
        says = (
            f"{at} averages gradients after the optimizer has stepped in {last}: that step used this rank's own "
            "gradients, and what is averaged now is thrown away."
        )
    elif start(backward) < start(step) and all(start(one) < start(backward) for one in made):
        says = (
            f"{at} averages gradients before {script.at(backward)} makes those of this round, so the step in {last} "
            "uses what was never averaged."
        )
    else:
        return None
    return CauseInText((order.average, average.call), says, *after_backward(script, order))
