"""Rates that an optimizer of the script's own measures layer by layer: LARS's and LAMB's ratio, and which way up it is.

Asked only where a score has shown that the network learned too little. It answers with nodes and decides nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.causes import CauseInText
from grader.checks.source.gradients.updates import reads_gradient
from grader.checks.source.script import Script
from grader.checks.source.syntax.arithmetic import is_quotient
from grader.checks.source.syntax.nodes import ancestors, name_of, walk

_NORMS = ("norm", "vector_norm")


def upside_down(script: Script) -> Iterable[CauseInText]:
    """Quotients of the gradient's norm by the weights', in the step of an optimizer of the script's own."""
    for tree in script.trees:
        for node in walk(tree.root):
            if not is_quotient(node) or not _in_optimizer(tree.parent, node):
                continue
            if any(isinstance(above, ast.Compare) for above in ancestors(tree.parent, node)):
                continue
            above, below = _norms(script, node.left), _norms(script, node.right)
            if below == {"weights"} and "gradient" in above:
                yield CauseInText(
                    (node,),
                    f"{script.at(node)} takes the gradient's norm by that of the weights, {script.quote(node)}: the "
                    "ratio is upside down. Layers with small gradients take smaller steps still, and those with large "
                    "ones larger steps, where LARS takes steps in proportion to the layer's weights.",
                    "Turn it over: the weights' norm above, the gradient's norm plus the weight decay times the "
                    "weights' norm below.",
                )


def _in_optimizer(parent: dict[ast.AST, ast.AST], node: ast.AST) -> bool:
    bases = [b for above in ancestors(parent, node) if isinstance(above, ast.ClassDef) for b in above.bases]
    return any("Optimizer" in name_of(base) or "optim" in ast.unparse(base) for base in bases)


def _norms(script: Script, side: ast.expr) -> set[str]:
    """Of what the norms are that a value is made of: `gradient`, `weights`."""
    found = set()
    for part in (side, *script.values.closure(side)):
        if isinstance(part, ast.Call) and name_of(part) in _NORMS:
            of = (
                part.args[0]
                if part.args and not _is_method(script, part)
                else getattr(part.func, "value", part)
            )
            made = (of, *script.values.closure(of))
            found.add("gradient" if any(map(reads_gradient, made)) else "weights")
    return found


def _is_method(script: Script, call: ast.Call) -> bool:
    """`p.norm()`, not `torch.norm(p)`."""
    return isinstance(call.func, ast.Attribute) and script.names.qualified(call.func) is None
