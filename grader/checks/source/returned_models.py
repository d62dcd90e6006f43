"""Functions that wrap a model and give back the bare one: what they return is trained without the wrapper."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.edits import Edits
from grader.checks.source.script import Script
from grader.model.fix import Fix


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
