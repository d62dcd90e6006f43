"""Layers that run or not as a random number says: where a forward pass draws it."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from itertools import islice

from grader.checks.source.script import Script
from grader.checks.source.syntax_nodes import steps_up

_RANDOM = ("random.", "numpy.random.", "torch.rand", "torch.bernoulli")


def chosen_by_chance(script: Script) -> Iterable[ast.AST]:
    """Tests in the forward pass of a module that depend on a number drawn there."""
    for tree in script.trees:
        for call in tree.calls:
            function = tree.function(call)
            forward = isinstance(function, ast.FunctionDef) and function.name in ("forward", "__call__")
            if not forward or not (script.names.qualified(call.func) or "").startswith(_RANDOM):
                continue
            around = steps_up(tree.parent, call, function)
            tests = (n for n, above in around if isinstance(above, ast.If | ast.IfExp) and above.test is n)
            yield from islice(tests, 1)
