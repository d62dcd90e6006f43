"""Statements that only name a method, `optimizer.zero_grad` without parentheses: they do nothing, and raise nothing."""

from __future__ import annotations

import ast

from grader.checks.source.script import Script


def uncalled(script: Script, method: str) -> list[ast.Attribute]:
    """The statements that name a method of this name and don't call it."""
    return [
        node
        for tree in script.trees
        for node in tree.attribute_loads.get(method, ())
        if isinstance(tree.parent.get(node), ast.Expr)
    ]


def parentheses(script: Script, named: ast.Attribute) -> str:
    """What to write instead of such a statement."""
    text = ast.unparse(named)
    return f"Write `{text}()` at {script.at(named)}: without the parentheses `{text}` names it and calls nothing."
