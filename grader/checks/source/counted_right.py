"""What a validation pass has counted, in the script's own names."""

from __future__ import annotations

import ast

from grader.checks.source.edits import Edits
from grader.checks.source.script import Script
from grader.checks.source.syntax_nodes import end, name_of, start

_COMPARING = ("eq", "equal")
_COUNTING = ("len", "numel", "size")


def share_of_right(script: Script, at: ast.AST) -> str:
    """The right predictions by the samples, as counted in a validation loop before a place; "" where none is there."""
    tree, edits = script.names.tree(at), Edits(script)
    for draw in script.training.draws:
        near = script.names.tree(draw.loop) is tree and tree.scope(draw.loop) is tree.scope(at)
        if not draw.evaluates or not near or end(draw.loop) > start(at):
            continue
        added = [n for n in ast.walk(draw.loop) if isinstance(n, ast.AugAssign) and isinstance(n.op, ast.Add)]
        right = [n.target for n in added if any(compares(part) for part in ast.walk(n.value))]
        size = [n.target for n in added if isinstance(n.value, ast.Call) and name_of(n.value) in _COUNTING]
        if len(right) == 1 and len(size) == 1:
            return f"float({edits.text(right[0])} / {edits.text(size[0])})"
    return ""


def compares(node: ast.AST) -> bool:
    """Whether predictions are held against labels: `a == b`, `a.eq(b)`."""
    if isinstance(node, ast.Compare):
        return isinstance(node.ops[0], ast.Eq)
    return isinstance(node, ast.Call) and name_of(node) in _COMPARING
