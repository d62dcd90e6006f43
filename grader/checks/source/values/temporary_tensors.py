"""Tensors that are made on the spot, so that what a collective writes into them nobody else sees.

Where a method may hand back the tensor itself (`x.cuda()` of a tensor on the device), only one that is known to be
elsewhere counts. Dummies that stand for a barrier are no loss.
"""

from __future__ import annotations

import ast

from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import READS, walk

# Tensors made anew: what is written into them nobody else sees.
MAKERS = {
    "torch.tensor", "torch.as_tensor", "torch.stack", "torch.cat", "torch.FloatTensor", "torch.LongTensor",
    "torch.DoubleTensor", "torch.cuda.FloatTensor", "torch.Tensor",
}  # fmt: skip
_COPIES = {"clone", "float", "double", "half", "long", "int", "sum", "mean"}
_MOVES = {"cuda", "to"}
ALIASES = {"detach", "view", "flatten", "contiguous", "data", "unsqueeze", "squeeze", "reshape"}


def lost(script: Script, call: ast.Call, tensor: ast.expr) -> bool:
    """Whether a collective writes its result into a tensor that nobody holds."""
    tree = script.names.tree(call)
    above = tree.parent.get(call)
    waited = isinstance(above, ast.Attribute) and above.attr == "wait"
    if not isinstance(above, ast.Expr) and not waited and not runs_on(script, call):
        return False
    return _fresh(script, tensor) and _says_something(script, tensor)


def runs_on(script: Script, call: ast.Call) -> bool:
    """Whether a collective is told to run on in the background."""
    return script.values.constant(script.argument(call, "async_op")) is True


def _fresh(script: Script, node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return True
    if not isinstance(node, ast.Call):
        return False
    if script.names.qualified(node.func) in MAKERS:
        return True
    if not isinstance(node.func, ast.Attribute) or script.names.qualified(node.func) is not None:
        return False
    method, base = node.func.attr, node.func.value
    if method in _COPIES:
        return True
    if method in _MOVES:
        # A tensor that is there already is not copied: only one known to be made elsewhere is sure to be.
        return _fresh(script, base) or any(_made_on_cpu(script, o) for o in script.values.origins(base))
    return method in ALIASES and _fresh(script, base)


def _made_on_cpu(script: Script, origin: ast.AST) -> bool:
    if not isinstance(origin, ast.Call) or script.names.qualified(origin.func) not in MAKERS:
        return False
    return not any(k.arg == "device" for k in origin.keywords)


def _says_something(script: Script, node: ast.expr) -> bool:
    """Not a dummy: `all_reduce(torch.zeros(1).cuda())` is a barrier."""
    names = [n for n in walk(node) if isinstance(n, READS)]
    return any(
        script.names.qualified(n) is None and not isinstance(script.values.constant(n), int | float)
        for n in names
    )
