"""What keeps an average of gradients that a script makes by itself from reaching a step.

Asked where a run has shown that ranks stepped apart, or that their weights are; decides nothing. Of averages that a
round makes at the wrong moment it claims nothing where another one of the same round may be what the step uses.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from itertools import takewhile

from grader.checks.source.causes import CauseInText
from grader.checks.source.gradients.average_fixes import after_backward
from grader.checks.source.gradients.averaging import Average
from grader.checks.source.gradients.backward_causes import reduced_loss
from grader.checks.source.gradients.late_bound_hooks import late_bound_hook
from grader.checks.source.gradients.late_waits import late_wait
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import ancestors, name_of, start
from grader.checks.source.syntax.tree import Tree
from grader.checks.source.values.unread_iterators import REDUCING, unread_exchange
from grader.checks.source.values.used_up_generators import used_up
from grader.model.fix import Fix


def cause_by_hand(script: Script) -> CauseInText | None:
    """The likeliest one that the text shows; None where it shows none."""
    return (
        unread_exchange(script, REDUCING)
        or late_bound_hook(script)
        or late_wait(script)
        or used_up(script)
        or reduced_loss(script)
        or next(iter(misplaced_averages(script)), None)
        or skipped_average(script)
    )


def by_itself(script: Script) -> str:
    """What to write where a script averages, the run shows that it does so in vain, and the text does not show why."""
    return (
        f"The script averages by itself, at {script.at(script.averaging.all[0].call)}: let that reach every gradient "
        "behind the last backward pass before each step. Or leave it out and wrap the model in "
        "`DistributedDataParallel`."
    )


def skipped_average(script: Script) -> CauseInText | None:
    """An average under a test that the step of its round does not stand under."""
    for average in script.averaging.all:
        order = script.averaging.order(average)
        if order is None or len(order.steps) != 1:
            continue
        step, tree = order.steps[0], script.names.tree(order.average)
        tests = _tests(tree, order.average, order.around)
        if _tests(tree, step, order.around):
            continue  # whatever the step's own test is
        for above in tests:
            if above.orelse or _nothing_to_average(script, above.test):
                continue
            averaged = tree.statement(order.average)
            return CauseInText(
                (above.test, averaged, step),
                f"{script.at(averaged)} averages where {script.quote(above.test)} holds ({script.at(above.test)}), and "
                f"{script.at(step)} steps in every round: in the others with this rank's own gradients.",
                f"Take {script.quote(averaged)} out of `if {ast.unparse(above.test)}:`: what steps in every round has "
                "to average in every round.",
                _always(script, above),
            )
    return None


def _tests(tree: Tree, node: ast.AST, outer: ast.AST) -> list[ast.If]:
    """The tests that a node stands under within a round."""
    within = takewhile(lambda above: above is not outer, ancestors(tree.parent, node))
    return [above for above in within if isinstance(above, ast.If)]


def _nothing_to_average(script: Script, test: ast.expr) -> bool:
    """`if world_size > 1:`, `if dist.is_initialized():`, `if p.grad is not None:`; or by a name for such a test."""
    for part in (n for origin in (test, *script.values.origins(test)) for n in ast.walk(origin)):
        if isinstance(part, ast.Call) and name_of(part) in ("is_initialized", "is_available"):
            return True
        if isinstance(part, ast.Attribute) and "grad" in part.attr:
            return True
        if isinstance(part, ast.Compare) and script.ranks.world(part.left):
            return all(isinstance(n, ast.Constant) for n in part.comparators)
    return False


def _always(script: Script, test: ast.If) -> Fix | None:
    """The one statement of a block, without the test above it."""
    edits, alone = Edits(script), test.body[0]
    if len(test.body) != 1 or not isinstance(alone, ast.Expr) or alone.lineno != alone.end_lineno:
        return None
    edits.rewrite(test, edits.text(alone.value))
    return edits.fix("Averages before every step.")


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
