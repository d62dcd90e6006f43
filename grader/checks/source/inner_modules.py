"""Names of the module inside a wrapper: `raw = model.module`, and `raw = model.module if ddp else model`.

Among several ranks such a name is never the wrapper; what it holds in a run without others does not count.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.script import Script
from grader.checks.source.syntax_nodes import READS

_MAX_DEPTH = 6


def wrapper_around(script: Script, node: ast.AST) -> ast.expr | None:
    """The wrapper, as it is written, whose inner module an expression holds; None where it may hold the wrapper."""
    held = list(_held(script, node, 0))
    inner = [o.value for o in held if _is_module(script, o) and isinstance(o, ast.Attribute)]
    return inner[0] if inner and not any(script.training.wrapped(o) for o in held) else None


def _is_module(script: Script, node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "module" and script.training.wrapped(node.value)


def _held(script: Script, node: ast.AST, depth: int) -> Iterable[ast.AST]:
    """What an expression may be where there are other ranks, followed through plain assignments."""
    if _is_module(script, node):
        yield node
        return
    parts: list[ast.expr] = []
    if isinstance(node, ast.IfExp):
        parts = [node.body, node.orelse]
    elif isinstance(node, ast.Name) and depth < _MAX_DEPTH:
        found = [d for d in script.scopes.reaching(node.id, node) if not script.guards.alone(d.node)]
        if all(d.kind == "assign" and not d.path for d in found):
            parts = [d.value for d in found if d.value is not None]
    parts = [p for p in parts if not script.guards.alone(p)]
    if not parts:
        yield from script.values.origins(node) if isinstance(node, READS) else (node,)
    for part in parts:
        yield from _held(script, part, depth + 1)
