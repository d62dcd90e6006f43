"""Numbers of rounds that hold the rank, written without it."""

from __future__ import annotations

import ast

from grader.checks.source.causes import names_rank
from grader.checks.source.edits import Edits
from grader.checks.source.script import Script
from grader.checks.source.syntax_nodes import LOOPS
from grader.model.fix import Fix


def equal_rounds(script: Script, node: ast.AST) -> tuple[str, Fix | None]:
    """What to write for a bound of a loop that differs by rank, and the edit; "" where that is not plain."""
    for part in ast.walk(_bounds(node)):
        kept: ast.expr | None = None
        if isinstance(part, ast.IfExp) and names_rank(script, part.test):
            kept = part.orelse
        elif isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add | ast.Sub):
            left, right = names_rank(script, part.left), names_rank(script, part.right)
            kept = (
                part.left
                if right and not left
                else part.right
                if left and isinstance(part.op, ast.Add)
                else None
            )
        if kept is not None and isinstance(part, ast.expr) and not names_rank(script, kept):
            edits = Edits(script)
            edits.replace(part, edits.text(kept))
            return edits.text(kept), edits.fix("Lets all ranks go through the loop equally often.")
    return "", None


def _bounds(node: ast.AST) -> ast.AST:
    if isinstance(node, LOOPS):
        return node.test if isinstance(node, ast.While) else node.iter
    return node
