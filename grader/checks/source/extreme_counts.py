"""Counts of which a reduction keeps the largest or smallest, where their sum is meant."""

from __future__ import annotations

import ast

from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax_nodes import walk


def extreme_of_counts(script: Script, call: ast.Call, tensor: ast.expr) -> str | None:
    """The operation (`MAX`) by which one rank's count of right predictions takes the place of the sum over ranks."""
    op = script.argument(call, "op")
    if op is None or op is UNKNOWN:
        return None
    names = {getattr(o, "attr", "") for o in script.values.origins(op)}
    if not names or not names <= {"MAX", "MIN", "PRODUCT"}:
        return None
    held = {n.id for n in walk(tensor) if isinstance(n, ast.Name)}
    held |= {n.id for n in script.values.closure(tensor) if isinstance(n, ast.Name)}
    tree = script.names.tree(call)
    for node in walk(tree.scope(call)):
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
            target = node.target.value if isinstance(node.target, ast.Subscript) else node.target
            counts = any(
                isinstance(n, ast.Compare) and isinstance(n.ops[0], ast.Eq) for n in walk(node.value)
            )
            if counts and isinstance(target, ast.Name) and target.id in held:
                return min(names)
    return None
