"""Which line makes a speed-up that is a ratio of other times than it should be: whole runs', or the other way round.

Asked only where a scorer has seen which ratio it is; it says where and what to write, and decides nothing.
"""

from __future__ import annotations

import ast

from grader.checks.source.metrics.recorded_losses import Cause
from grader.checks.source.metrics.written_values import where_written
from grader.checks.source.script import Script
from grader.checks.source.syntax.arithmetic import is_quotient
from grader.checks.source.syntax.nodes import start

PER_EPOCH = "Divide each run's seconds by its epochs before two runs are compared."
TURNED = "Divide the seconds of an epoch on one rank by those on several: above 1, several ranks are the faster ones."
"""What is right, for all scripts."""


def whole_runs(script: Script) -> Cause | None:
    """The last ratio of two times that the speed-up comes of, and where its sides were taken."""
    ratio = _ratio(script)
    if ratio is None:
        return None
    sides = [o for side in (ratio.left, ratio.right) for o in script.values.origins(side)]
    taken = [
        o
        for o in sides
        if isinstance(o, ast.Call | ast.Subscript | ast.GeneratorExp) and script.names.knows(o)
    ]
    told = " and ".join(script.quote(o) for o in taken[:2])
    where = f": in {told} they are whole runs'" if told else ""
    return Cause((*taken, ratio), f"{PER_EPOCH[:-1]}{where}.")


def turned(script: Script) -> Cause | None:
    """The ratio that stands upside down."""
    ratio = _ratio(script)
    if ratio is None:
        return None
    upright = ast.unparse(ast.BinOp(ratio.right, ast.Div(), ratio.left))
    return Cause((ratio,), f"Write `{upright}` for {script.quote(ratio)}. {TURNED}")


def _ratio(script: Script) -> ast.BinOp | None:
    """The last division that the speed-up comes of."""
    made = where_written(script, "`speedup` is wrong")
    ratios = [n for node in made for n in ast.walk(node) if is_quotient(n)]
    ratios = ratios or [
        n for tree in script.trees for n in ast.walk(tree.root) if is_quotient(n) and _near(script, n)
    ]
    return max(ratios, key=start, default=None)


def _near(script: Script, ratio: ast.BinOp) -> bool:
    """Whether a statement is about a speed-up by its words."""
    statement = script.names.tree(ratio).statement(ratio)
    return any(word in ast.unparse(statement).lower() for word in ("speedup", "speed_up"))
