"""Where a mean is taken in each round of an exchange, so that what came early is divided once more each time.

Asked only where a scorer has seen by the numbers that it is so; it says where and what to write, and decides nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from grader.checks.source.metrics.recorded_losses import Cause
from grader.checks.source.script import Script
from grader.checks.source.syntax.arithmetic import is_scaled, scales
from grader.checks.source.syntax.nodes import LOOPS, name_of, start

ONCE = "Only add in each round, and divide once, by the number of ranks, when all parts are in."
"""What is right, for all scripts."""


def running_mean(script: Script) -> Cause | None:
    """The division inside of the loop that receives."""
    for node in sorted(_means(script), key=start):
        if isinstance(node, ast.AugAssign):
            return Cause((node,), f"Leave out {script.quote(node)} in the loop. {ONCE}")
        if isinstance(node, ast.BinOp):
            added = node.left if isinstance(node.left, ast.BinOp) else node.right
            text = ast.unparse(added)
            return Cause((node,), f"Write `{text}` for {script.quote(node)}. {ONCE}")
        return Cause((node,), f"Write a sum for {script.quote(node)}. {ONCE}")
    return None


def _means(script: Script) -> Iterator[ast.AST]:
    """`(a + b) / 2`, `0.5 * (a + b)`, `a /= 2`, `torch.stack([a, b]).mean(0)` and `a.lerp(b, 0.5)` in a loop."""
    for tree in script.trees:
        for node in ast.walk(tree.root):
            if is_scaled(node):
                sides = (node.left, node.right)
                found = any(isinstance(s, ast.BinOp) and isinstance(s.op, ast.Add) for s in sides)
                found = found and any(_divides(script, s) for s in sides)
            elif scales(node):
                found = _divides(script, node.value)
            elif isinstance(node, ast.Call):
                pair = node.args[0] if node.args else None
                found = name_of(node) in ("lerp", "lerp_") or (
                    name_of(node) == "mean"
                    and any(name_of(n) == "stack" for n in (node.func, *ast.walk(node)))
                )
                found = found and not isinstance(pair, ast.Starred)
            else:
                continue
            if found and any(isinstance(a, LOOPS) and _receives(script, a) for a in _loops(script, node)):
                yield node


def _loops(script: Script, node: ast.AST) -> list[ast.AST]:
    return list(script.updates.loops_around(node))


def _receives(script: Script, loop: ast.AST) -> bool:
    receiving = script.called("recv", "irecv", "P2POp", "batch_isend_irecv", "recv_object_list")
    return bool(script.updates.entries(loop, receiving))


def _divides(script: Script, node: ast.expr) -> bool:
    """2, a half, or the number of ranks."""
    return script.values.constant(node) in (2, 0.5) or bool(script.ranks.world(node))
