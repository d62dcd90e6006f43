"""Where images of steps are counted that the clock does not measure: the steps to warm up before it is read.

Asked only where a scorer has found a table's seconds to be too few for its images; it says where and what to write, and
decides nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from grader.checks.source.metrics.late_readings import CLOCKS
from grader.checks.source.metrics.recorded_losses import Cause
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import ancestors, literal, loop_above, name_of, start


def untimed_images(script: Script) -> Cause | None:
    """A count that grows in each round of a loop in which one round, not the first, begins the clock."""
    for tree in script.trees:
        for clock in sorted(tree.calls, key=start):
            loop = loop_above(tree.parent, clock)
            if name_of(clock) not in CLOCKS or loop is None:
                continue
            test = next((a for a in ancestors(tree.parent, clock, loop) if isinstance(a, ast.If)), None)
            if not isinstance(test, ast.If) or not _is_one_round(test.test):
                continue
            again = {
                name_of(n)
                for n in ast.walk(test)
                if isinstance(n, ast.Name | ast.Attribute) and isinstance(n.ctx, ast.Store)
            }
            grown = next((n for n in _counts(script, loop) if name_of(n.target) not in again), None)
            if grown is not None:
                held, first = ast.unparse(grown.target), ast.unparse(test.test)
                return Cause(
                    (grown, clock),
                    f"Write `{held} = 0` beside {script.quote(tree.statement(clock))} at {script.at(clock)}: "
                    f"{script.quote(grown)} counts the steps before `{first}`, too, and the clock does not run yet in "
                    "these.",
                )
    return None


def _is_one_round(test: ast.expr) -> bool:
    """`number == 5`; the first round of all warms nothing up."""
    first = isinstance(test, ast.Compare) and literal(test.comparators[0]) == 0
    return isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq) and not first


def _counts(script: Script, loop: ast.AST) -> Iterator[ast.AugAssign]:
    """`images += len(batch)` in every round; what counts rounds by 1 is no count of images."""
    grown = (n for n in ast.walk(loop) if isinstance(n, ast.AugAssign) and isinstance(n.op, ast.Add))
    for node in grown:
        if not isinstance(node.value, ast.Constant) and _each_round(script, node, loop):
            yield node


def _each_round(script: Script, node: ast.AST, loop: ast.AST) -> bool:
    """Whether nothing but the loop decides whether a line is run."""
    parents = script.names.tree(node).parent
    return not any(isinstance(a, ast.If) for a in ancestors(parents, node, loop))
