"""Where parameters are made to require gradients."""

from __future__ import annotations

import ast

from grader.checks.source.script import Script
from grader.checks.source.syntax_nodes import start


def switched_on(script: Script) -> list[ast.AST]:
    """`net.stem.requires_grad_(True)` and `parameter.requires_grad = True`, in the order of the text."""
    found: list[ast.AST] = []
    for tree in script.trees:
        for call in tree.called("requires_grad_"):
            given = [*call.args, *(k.value for k in call.keywords)]
            if isinstance(call.func, ast.Attribute) and all(script.values.constant(g) is True for g in given):
                found.append(call)
        for definition in tree.attributes.get("requires_grad", ()):
            if script.values.constant(definition.value) is True:
                found.append(definition.node)
    return sorted(found, key=start)
