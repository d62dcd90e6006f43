"""Calls taken out of a test that lets only some ranks make them, as edits."""

from __future__ import annotations

import ast

from grader.checks.source.edits import Edits
from grader.checks.source.script import Script
from grader.checks.source.syntax_nodes import walk
from grader.model.fix import Fix


def out_of_test(script: Script, call: ast.Call, summary: str) -> Fix | None:
    """The first or last call of a block, or its only one, made by whoever comes to the test."""
    tree, edits = script.names.tree(call), Edits(script)
    statement = tree.statement(call)
    branch = tree.parent.get(statement)
    bare = isinstance(statement, ast.Expr) and statement.value is call
    if not bare or not isinstance(branch, ast.If) or branch.orelse:
        return None
    text = edits.text(statement)
    if len(branch.body) == 1:
        edits.rewrite(branch, text)
        return edits.fix(summary)
    stored = {
        n.id for s in branch.body for n in walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    if stored & {n.id for n in walk(statement) if isinstance(n, ast.Name)}:
        return None
    if statement is branch.body[0]:
        edits.before(branch, text)
    elif statement is branch.body[-1]:
        edits.after(branch, text)
    else:
        return None
    edits.remove(statement)
    return edits.fix(summary)
