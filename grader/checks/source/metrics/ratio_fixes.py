"""Ratios that each rank divides by itself and ranks then average: what to write so that counts are added up first."""

from __future__ import annotations

import ast

from grader.checks.source.script import Script
from grader.checks.source.syntax.arithmetic import is_quotient
from grader.checks.source.syntax.node_text import node_text
from grader.checks.source.syntax.nodes import walk


def reduced_first(script: Script, ratio: ast.expr, reduction: ast.Call) -> str:
    """Advice for a ratio of a rank's own counts and the collective that averages it."""
    return _counts_of_one_tensor(script, ratio, reduction) or _two_counts(script, ratio)


def _counts_of_one_tensor(script: Script, ratio: ast.expr, reduction: ast.Call) -> str:
    """For counts that lie in one tensor: reduce that instead of what is divided; "" elsewhere."""
    sides = (ratio.left, ratio.right) if is_quotient(ratio) else ()
    held = {node_text(script, side.value) for side in sides if isinstance(side, ast.Subscript)}
    if len(held) != 1 or not all(isinstance(side, ast.Subscript) for side in sides) or not reduction.args:
        return ""
    tree, (counts,), reduced = script.names.tree(reduction), held, node_text(script, reduction.args[0])
    divided = next(
        (
            n for n in walk(tree.function(reduction) or tree.root)
            if isinstance(n, ast.AugAssign) and node_text(script, n.target) == reduced and script.ranks.world(n.value)
        ),
        None,
    )  # fmt: skip
    left_out = [f"{script.quote(n)} at {script.at(n)}" for n in (reduction, divided) if n is not None]
    return (
        f"Reduce the counts, and divide afterwards: above {script.at(ratio)} write `dist.all_reduce({counts})`, and "
        f"leave out {' and '.join(left_out)}."
    )


def _two_counts(script: Script, ratio: ast.expr) -> str:
    """The two counts of a ratio, reduced in its place."""
    if not is_quotient(ratio):
        return (
            "Reduce numerator and denominator, and divide afterwards: `counts = torch.tensor([correct, total])`, "
            "`dist.all_reduce(counts)`, `counts[0] / counts[1]`."
        )
    tree = script.names.tree(ratio)
    scopes = (tree.scope(ratio), tree.root)
    on = ", device=device" if any("device" in tree.definitions.get(s, {}) for s in scopes) else ""
    left, right = node_text(script, ratio.left), node_text(script, ratio.right)
    return (
        f"Reduce numerator and denominator, and divide afterwards: above {script.at(ratio)} write `counts = "
        f"torch.tensor([{left}, {right}], dtype=torch.float64{on})`, `dist.all_reduce(counts)`, and report `counts[0] "
        f"/ counts[1]` instead of the average of {script.quote(ratio)}."
    )
