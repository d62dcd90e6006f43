"""Layers that run or not as a random number says: where a forward pass draws it."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.script import Script

_RANDOM = ("random.", "numpy.random.", "torch.rand", "torch.bernoulli")


def chosen_by_chance(script: Script) -> Iterable[ast.AST]:
    """Tests in the forward pass of a module that depend on a number drawn there."""
    for tree in script.trees:
        for call in tree.calls:
            function = tree.function(call)
            forward = isinstance(function, ast.FunctionDef) and function.name in ("forward", "__call__")
            if not forward or not (script.names.qualified(call.func) or "").startswith(_RANDOM):
                continue
            node: ast.AST | None = call
            while node is not None and node is not function:
                above = tree.parent.get(node)
                if isinstance(above, ast.If | ast.IfExp) and above.test is node:
                    yield above.test
                    break
                node = above
