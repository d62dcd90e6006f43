"""Where a script steps: by its optimizer, or by hand, taking a gradient from a parameter.

Asked only where a scorer has found that weights changed which were to stay as they are; decides nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from grader.checks.source.metrics.recorded_losses import Cause
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import name_of, start, walked_by

KEEP = (
    "Leave the weights as they were made until the gradients of all world sizes are there: all of them are of the same "
    "weights."
)
"""What is right, for all scripts."""
_MOVING = ("sub_", "add_", "copy_", "lerp_", "addcdiv_", "addcmul_", "set_")
_WALKING = ("parameters", "named_parameters")
_ASKED = ("torch.autograd.grad", "torch.func.grad")


def weight_step(script: Script) -> Cause | None:
    """The lines that step, with what to write."""
    found = sorted((*script.updates.steps, *_by_hand(script)), key=start)
    if not found:
        return None
    return Cause(tuple(found), f"Leave out {script.quote(found[0])} at {script.at(found[0])}. {KEEP}")


def _by_hand(script: Script) -> Iterator[ast.AST]:
    """`p -= rate * p.grad`, `p.data = p - …`, `p.data.add_(gradient, alpha=-rate)`."""
    for tree in script.trees:
        for node in ast.walk(tree.root):
            targets, taken = list[ast.expr](), list[ast.expr]()
            if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Sub | ast.Add):
                targets, taken = [node.target], [node.value]
            elif isinstance(node, ast.Assign):
                targets, taken = [t for t in node.targets if name_of(t) == "data"], [node.value]
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in _MOVING
            ):
                targets, taken = [node.func.value], [*node.args]
            if any(_is_parameter(script, t) for t in targets) and any(_of_gradient(script, t) for t in taken):
                yield node


def _is_parameter(script: Script, node: ast.expr) -> bool:
    """`p` and `p.data` of a loop over a model's parameters, `layer.weight`."""
    while isinstance(node, ast.Attribute) and node.attr == "data":
        node = node.value
    if isinstance(node, ast.Attribute):
        return node.attr in ("weight", "bias")
    if not isinstance(node, ast.Name):
        return False
    loops = [n for n in script.updates.loops_around(node) if isinstance(n, ast.For)]
    return any(_walks_parameters(script, loop, node.id) for loop in loops)


def _walks_parameters(script: Script, loop: ast.For, name: str) -> bool:
    named = [n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)]
    pairs = name_of(loop.iter) == "named_parameters" and name in named
    walked = loop.iter if pairs else walked_by(loop, name)
    origins = (walked, *script.values.origins(walked)) if walked is not None else ()
    return any(name_of(part) in _WALKING for origin in origins for part in ast.walk(origin))


def _of_gradient(script: Script, node: ast.expr) -> bool:
    """Whether a gradient has a part in a value: one that is read or asked for, or what is called so."""
    parts = [*ast.walk(node), *script.values.closure(node)]
    for name in [n for n in ast.walk(node) if isinstance(n, ast.Name)]:
        for loop in script.updates.loops_around(name):
            walked = walked_by(loop, name.id) if isinstance(loop, ast.For) else None
            parts += ast.walk(walked) if walked is not None else ()
    return any(
        (isinstance(n, ast.Name | ast.Attribute) and "grad" in name_of(n).lower())
        or (isinstance(n, ast.Call) and script.names.qualified(n.func) in _ASKED)
        for n in parts
    )
