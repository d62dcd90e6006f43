"""A network's own tensors that are added up over the ranks and never divided: each is then N times what it was."""

from __future__ import annotations

import ast

from grader.checks.source.script import Script
from grader.checks.source.syntax.arithmetic import SCALING, is_scaled
from grader.checks.source.syntax.nodes import name_of, names_in
from grader.checks.source.syntax.tree import Tree

_STATE = {"buffers", "named_buffers", "parameters", "named_parameters"}
_CHANGING = {*SCALING, "copy_", "lerp_"}


def summed_state(script: Script, call: ast.Call, name: str, tensor: ast.expr) -> ast.expr | None:
    """What names the tensors that a reduction of a loop's variable sums up, `net.buffers()`; None for other sums."""
    operation = script.argument(call, "op")
    if name != "all_reduce" or (operation is not None and name_of(operation) != "SUM"):
        return None
    held = tensor.value if isinstance(tensor, ast.Attribute) and tensor.attr == "data" else tensor
    tree = script.names.tree(call)
    above = tree.parent.get(call)
    while above is not None and isinstance(held, ast.Name):
        if isinstance(above, ast.For) and _binds(above.target, held.id):
            return above.iter if _of_network(above.iter) and not _scaled(tree, above, held.id) else None
        above = tree.parent.get(above)
    return None


def _binds(target: ast.expr, name: str) -> bool:
    return name in names_in(target)


def _of_network(given: ast.expr) -> bool:
    """`net.buffers()`, `net.state_dict().values()`."""
    if not isinstance(given, ast.Call) or not isinstance(given.func, ast.Attribute):
        return False
    owner = given.func.value
    states = given.func.attr in ("values", "items") and isinstance(owner, ast.Call)
    return name_of(owner) == "state_dict" if states else given.func.attr in _STATE


def _scaled(tree: Tree, loop: ast.For, name: str) -> bool:
    """Whether the loop's variable is divided, multiplied or overwritten anywhere in the loop, or handed to a helper."""
    for node in ast.walk(loop):
        if isinstance(node, ast.AugAssign) and _binds(node.target, name):
            return True
        if is_scaled(node) and _binds(node, name):
            return True
    return any(name_of(call) in _CHANGING and _binds(call.func, name) for call in tree.calls_within(loop))
