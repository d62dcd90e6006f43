"""A gradient of a mean square that is half or twice what it should be: where it is computed, and what to write.

Asked only where a run has been seen to train as if gradients were so; decides nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from grader.checks.source.metrics.recorded_losses import Cause, losses
from grader.checks.source.script import Script
from grader.checks.source.syntax.arithmetic import is_scaled
from grader.checks.source.syntax.nodes import name_of, start

HALF = "The derivative of a mean of squares `(prediction - y) ** 2` is 2 times the mean of `(prediction - y) * x`."
TWICE = f"{HALF} It is 2 times that, and no more."
"""What is right, for all scripts."""
_STEPPING = ("sub_", "add_", "sub", "subtract", "addcmul_")


def half_gradient(script: Script) -> Cause | None:
    """The formula of a gradient by hand without its factor 2, or a loss of which half is differentiated."""
    for loss in losses(script):
        for node in sorted(script.values.closure(loss), key=start):
            if is_scaled(node) and _halves(script, node):
                return Cause(
                    (node,),
                    f"Leave out the half in {script.quote(node)}: the loss is the mean square itself.",
                )
    found = list(dict.fromkeys(_formulas(script)))
    if not found or any(_doubles(script, part) for f in found for part in script.values.closure(f)):
        return None
    written = "; ".join(f"`2 * ({ast.unparse(f)})` for {script.quote(f)}" for f in found[:2])
    return Cause(tuple(found), f"Write {written}: the derivative of a square has the factor 2.")


def double_gradient(script: Script) -> Cause | None:
    """A factor 2 that is in what is differentiated, or in a formula that has it already."""
    doubled = [n for loss in losses(script) for n in script.values.closure(loss) if _doubles(script, n)]
    if not doubled:
        parts = [p for f in _formulas(script) for p in script.values.closure(f)]
        doubled = [p for p in parts if _doubles(script, p)][1:]
    if not doubled:
        return None
    return Cause((doubled[0],), f"Leave out the factor 2 in {script.quote(doubled[0])}: it is one too many.")


def _formulas(script: Script) -> Iterator[ast.expr]:
    """What parameters are moved by, where no autograd makes it: products of a difference and an input, averaged."""
    for step in _steps(script):
        for origin in (step, *script.values.origins(step)):
            averages = any(_averages(n) for n in ast.walk(origin))
            differs = any(
                isinstance(n, ast.BinOp) and isinstance(n.op, ast.Sub) for n in script.values.closure(origin)
            )
            if averages and differs and isinstance(origin, ast.expr):
                yield origin


def _averages(node: ast.AST) -> bool:
    """`a / len(b)` and `a.mean()`; a mean of the step itself is none."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Div)
    return isinstance(node, ast.Call) and name_of(node) == "mean"


def _steps(script: Script) -> Iterator[ast.expr]:
    """Names and formulas in what is taken from a parameter, in the order of the text."""
    for tree in script.trees:
        for node in ast.walk(tree.root):
            if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Sub | ast.Add):
                taken = node.value
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and _moves(node):
                taken = node.value.right
            elif isinstance(node, ast.Call) and name_of(node) in _STEPPING and node.args:
                taken = node.args[-1]
            else:
                continue
            sides: tuple[ast.expr, ...] = (taken,)
            if isinstance(taken, ast.BinOp):
                sides = (taken.left, taken.right)
            elif isinstance(taken, ast.UnaryOp):
                sides = (taken.operand,)
            yield from sides


def _moves(node: ast.Assign) -> bool:
    """`w = w - rate * gradient`."""
    value = node.value
    if not (isinstance(value, ast.BinOp) and isinstance(value.op, ast.Sub)):
        return False
    return ast.unparse(value.left) == ast.unparse(node.targets[0])


def _halves(script: Script, node: ast.BinOp) -> bool:
    half = (2,) if isinstance(node.op, ast.Div) else (0.5,)
    sides = (node.right,) if isinstance(node.op, ast.Div) else (node.left, node.right)
    return any(script.values.constant(s) in half for s in sides)


def _doubles(script: Script, node: ast.AST) -> bool:
    """`2 * x`, and `x + x` under another name; a power is none."""
    if not is_scaled(node):
        return False
    if isinstance(node.op, ast.Div):
        return script.values.constant(node.right) == 0.5
    return any(script.values.constant(s) == 2 for s in (node.left, node.right))
