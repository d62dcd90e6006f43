"""Edits that switch a network's mode, and gradients, around loops: what EVAL006 writes.

Knows nothing of why; what can't be written for certain is None.
"""

from __future__ import annotations

import ast

from grader.checks.source.models.left_in_evaluation import Left
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import Loop, names_bound_in
from grader.model.fix import Fix


def back_to_training(script: Script, left: Left) -> Fix | None:
    """Training mode switched on before the loop that trains, or in each of its rounds."""
    if left.network is None:
        return None
    edits = Edits(script)
    edits.before(left.loop.body[0] if left.within else left.loop, f"{ast.unparse(left.network)}.train()")
    return edits.fix("Goes back to training mode.")


def without_gradients(script: Script, loop: Loop) -> Fix | None:
    """Gradients switched off around a loop."""
    edits = Edits(script)
    edits.wrap([loop], f"with {edits.name('torch.no_grad', loop)}():")
    return edits.fix("Evaluates without gradients.")


def in_evaluation_mode(script: Script, loop: Loop, network: ast.expr, off: bool) -> Fix | None:
    """The mode switched before a loop and back after it, and gradients switched off where they are on."""
    edits, name, tree = Edits(script), ast.unparse(network), script.names.tree(loop)
    leaves = [r for r in tree.returns.get(tree.function(loop) or tree.root, ()) if tree.inside(r, loop)]
    if (
        not isinstance(network, ast.Name | ast.Attribute)
        or leaves
        or gradients_named(script)
        or _changes(loop, name)
    ):
        return None
    if off:
        edits.before(loop, f"{name}.eval()")
    else:
        edits.wrap([loop], f"with {edits.name('torch.no_grad', loop)}():", f"{name}.eval()")
    edits.after(loop, f"{name}.train()")
    return edits.fix("Evaluates in evaluation mode, and goes back to training mode.")


def _changes(loop: Loop, name: str) -> bool:
    """Whether a loop gives what it evaluates another meaning on its way."""
    first = name.partition(".")[0]
    return first in names_bound_in(loop)


def gradients_named(script: Script) -> bool:
    """Gradients are switched by hand, or asked for on purpose (`torch.autograd.grad`)."""
    return bool(script.called("set_grad_enabled", "grad"))
