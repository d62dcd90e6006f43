"""The bare model that a wrapper holds: names of it, such as `raw = model.module`, and functions that give it back.

Among several ranks such a name is never the wrapper; what it holds in a run without others does not count. What a
function returns bare is trained without the wrapper.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import READS
from grader.model.fix import Fix

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


def bare_returns(script: Script) -> Iterable[tuple[ast.Return, str, Fix | None]]:
    """Each such `return`, what it should return, and the edit."""
    for wrap in script.training.wraps:
        tree = script.names.tree(wrap)
        function, statement = tree.function(wrap), tree.statement(wrap)
        wrapped = script.argument(wrap, "module")
        if not isinstance(function, ast.FunctionDef) or not isinstance(wrapped, ast.Name):
            continue
        if (
            not isinstance(statement, ast.Assign)
            or statement.value is not wrap
            or len(statement.targets) != 1
        ):
            continue
        target = statement.targets[0]
        for node in ast.walk(function):
            bare = (
                isinstance(node, ast.Return)
                and isinstance(node.value, ast.Name)
                and node.value.id == wrapped.id
            )
            if not bare or node.lineno < statement.lineno or not isinstance(target, ast.Name | ast.Attribute):  # type: ignore[attr-defined]
                continue
            if isinstance(target, ast.Name) and target.id == wrapped.id:
                continue
            edits = Edits(script)
            edits.replace(node.value, edits.text(target))  # type: ignore[attr-defined]
            yield node, edits.text(target), edits.fix("Gives the wrapper back.")  # type: ignore[misc]
