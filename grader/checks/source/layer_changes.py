"""Layers that the text puts into a model when its optimizer or its wrapper is built already, which has them not."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.script import Script
from grader.checks.source.syntax_nodes import start


def made_later(script: Script, names: Iterable[str], calls: Iterable[ast.Call]) -> list[ast.stmt]:
    """Statements below one of these calls that put in layers which have these parameters: `net.head = …`, `net[2] = …`.

    The calls build optimizers, or wrap models.
    """
    layers = {part for name in names for part in name.split(".")[:-1]}
    found: list[ast.stmt] = []
    for before in calls:
        tree = script.names.tree(before)
        for call in tree.calls_within(tree.function(before) or tree.root):
            statement = tree.statement(call)
            below = tree.function(call) is tree.function(before) and start(statement) > start(before)
            if not below or tree.enclosing_class(call) is not tree.enclosing_class(before):
                continue
            if isinstance(statement, ast.Assign) and any(_layer(t) in layers for t in statement.targets):
                found.append(statement)
    return list(dict.fromkeys(found))


def _layer(target: ast.expr) -> str:
    """What a store calls the layer that it puts in; "" of other targets."""
    if isinstance(target, ast.Attribute):
        return target.attr
    key = target.slice if isinstance(target, ast.Subscript) else None
    return str(key.value) if isinstance(key, ast.Constant) else ""
