"""Collectives whose return value is taken for their result: they write that into a tensor, and return None.

In the background (`async_op=True`) they return a handle, and who asks whether there is one knows of the None.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.collectives.collective_calls import ALL
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import DISPLAYS, ancestors, start, walk
from grader.checks.source.values.data_flow import source_text

_SOMETHING = ("new_group",)
_NUMBERS = ("float", "int", "len", "max", "min", "print", "round", "sum")
_TESTED = (ast.If, ast.IfExp, ast.While, ast.BoolOp, ast.Assert)


def empty_results(script: Script) -> Iterable[tuple[ast.Call, ast.expr]]:
    """Collectives that return None, each with the first place that goes on with it as with a tensor or a number."""
    asked = {
        call
        for dotted in ALL
        for call in script.calls(dotted)
        if not dotted.endswith(_SOMETHING) and not isinstance(script.names.tree(call).parent[call], ast.Expr)
        if (given := script.argument(call, "async_op")) is None or script.values.constant(given) is False
    }
    found: dict[ast.Call, ast.expr] = {}
    for tree in script.trees if asked else ():
        for used in sorted((u for node in walk(tree.root) for u in _used(script, node)), key=start):
            for origin in script.values.origins(used):
                if isinstance(origin, ast.Call) and origin in asked and not _asked_for(script, used):
                    found.setdefault(origin, used)
    return found.items()


def _used(script: Script, node: ast.AST) -> list[ast.expr]:
    """What None at this place would stop the script, or be said instead of a number."""
    if isinstance(node, ast.Attribute | ast.Subscript | ast.FormattedValue):
        return [node.value]
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.Compare) and not isinstance(node.ops[0], ast.Is | ast.IsNot | ast.Eq | ast.NotEq):
        return [node.left, *node.comparators]
    if isinstance(node, ast.Assign) and any(isinstance(t, DISPLAYS) for t in node.targets):
        return [node.value]
    if isinstance(node, ast.Call) and script.names.qualified(node.func) in _NUMBERS:
        return node.args
    return []


def _asked_for(script: Script, used: ast.expr) -> bool:
    """Whether a test around a place asks for the value itself."""
    name = source_text(used)
    tests = [above for above in ancestors(script.names.tree(used).parent, used) if isinstance(above, _TESTED)]
    parts = [v for t in tests for v in (t.values if isinstance(t, ast.BoolOp) else [t.test])]
    return bool(name) and any(source_text(n) == name and n is not used for p in parts for n in walk(p))
