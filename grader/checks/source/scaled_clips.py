"""Clips of gradients that a script has scaled by hand, and divides by the same number only afterwards.

Without a `GradScaler` the text itself says what the scale is: what multiplies the loss, and divides its gradients.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.source.arithmetic import is_quotient, same_value
from grader.checks.source.call_arguments import called_on
from grader.checks.source.late_clips import measures_alone
from grader.checks.source.script import Script
from grader.checks.source.syntax_nodes import start, walk

_MAX_DEPTH = 4


@dataclass(frozen=True, slots=True)
class ScaledClip:
    """One of them.

    Attributes:
        clip, backward: the calls. unscaled: the division that comes too late.
        scale: what the loss is multiplied by.
    """

    clip: ast.Call
    backward: ast.Call
    unscaled: ast.AST
    scale: ast.expr


def scaled_clips(script: Script) -> Iterable[ScaledClip]:
    """All clips between a backward pass from a scaled loss and the division that takes the scale out again."""
    clips = [c for c in script.updates.clips if not measures_alone(c)]
    quotients = list(divisions(script)) if clips else []
    for backward in script.training.backwards if quotients else ():
        for scale in _scales(script, backward):
            late = [node for node, by in quotients if same_value(script.values, scale, by)]
            clip = next((c for c in clips if late and _between(script, backward, c, late)), None)
            if clip is not None:
                yield ScaledClip(clip, backward, min(late, key=start), scale)


def _scales(script: Script, backward: ast.Call) -> list[ast.expr]:
    """Factors of the loss that goes backward."""
    value = called_on(backward) or backward
    products = [o for o in script.values.origins(value) if isinstance(o, ast.BinOp)]
    return [side for o in products if isinstance(o.op, ast.Mult) for side in (o.left, o.right)]


def divisions(script: Script) -> Iterable[tuple[ast.AST, ast.expr]]:
    """Where gradients are divided, and by what."""
    is_gradient = script.updates.is_gradient
    for node in (n for tree in script.trees for n in walk(tree.root)):
        if isinstance(node, ast.AugAssign) and is_gradient(node.target):
            by = _divisor(node.op, node.value)
        elif isinstance(node, ast.BinOp) and is_gradient(node.left):
            by = _divisor(node.op, node.right)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            how = {"div": ast.Div(), "mul": ast.Mult()}.get(
                node.func.attr.strip("_").removeprefix("foreach_")
            )
            on, given = (node.args[0], node.args[1:]) if len(node.args) > 1 else (node.func.value, node.args)
            by = _divisor(how, given[0]) if how is not None and is_gradient(on) else None
        else:
            by = None
        if by is not None:
            yield node, by


def _divisor(how: ast.operator, number: ast.expr) -> ast.expr | None:
    """What a quotient divides by: `/ scale`, or `* (1 / scale)`."""
    if isinstance(how, ast.Mult) and is_quotient(number):
        return number.right
    return number if isinstance(how, ast.Div) else None


def _between(script: Script, backward: ast.Call, clip: ast.Call, late: list[ast.AST]) -> bool:
    """Whether a round that reaches all three clips after the pass, and divides after that alone."""
    return any(
        _in_order(script, loop, (backward, clip, *late))
        for loop in script.updates.rounds(backward, [clip], late)
    )


def _in_order(script: Script, around: ast.AST, nodes: tuple[ast.AST, ...]) -> bool:
    """The same within a loop, or within the function that it leaves all of them to."""
    for _ in range(_MAX_DEPTH):
        entries = [script.updates.entries(around, [node]) for node in nodes]
        passes, clipped, *divided = ([start(e) for e in found] for found in entries)
        if not all((passes, clipped, *divided)):
            return False
        if max(passes) < min(clipped) < min(map(min, divided)):
            return True
        called = entries[0][0]
        inner = script.graph.targets(called) if isinstance(called, ast.Call) and called not in nodes else ()
        if any(found != [called] for found in entries) or len(inner) != 1:
            # The pass stands by itself, and one function clips and divides.
            return (
                max(passes) < min(clipped) and clipped == divided[0] and _in_one_function(script, nodes[1:])
            )
        around = inner[0]
    return False


def _in_one_function(script: Script, nodes: tuple[ast.AST, ...]) -> bool:
    functions = {script.names.tree(n).function(n) for n in nodes}
    return len(functions) == 1 and start(nodes[0]) < min(map(start, nodes[1:]))
