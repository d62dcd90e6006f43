"""Figures of an epoch that a script reports by name, and the lines that compute one of them."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable

from grader.checks.source.script import Script
from grader.checks.source.syntax_nodes import name_of, start

FIGURES = ("accuracy", "val_accuracy", "val_acc", "val_loss", "train_loss", "loss")
_MEANS = ("mean", "div", "true_divide")
_JOINING = ("cat", "concat", "concatenate", "stack", "sum")


def entries(node: ast.AST) -> Iterable[tuple[str, ast.expr]]:
    """Names and values of a dictionary that is written down or built by `dict`."""
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value, value
    elif isinstance(node, ast.Call) and name_of(node) == "dict":
        for keyword in node.keywords:
            if keyword.arg is not None:
                yield keyword.arg, keyword.value


def computed_at(script: Script, names: Collection[str]) -> tuple[ast.AST, ...]:
    """Where what is reported by one of these names comes about: divided or averaged, joined, asked for, once each.

    Where none of that is to be seen in the text, the loops that draw validation batches.
    """
    divided = [p for p in parts_of(script, names) if _divides(p)]
    found: list[ast.AST] = [*divided[:1], *joined(script, names)[:1], *asked_for(script, names)[-1:]]
    return tuple(found or [d.loop for d in script.training.draws if d.evaluates][:1])


def asked_for(script: Script, names: Collection[str]) -> list[ast.Call]:
    """Calls of the script's own functions that that figure comes from, in the order of the text."""
    return [p for p in parts_of(script, names) if isinstance(p, ast.Call) and script.graph.targets(p)]


def joined(script: Script, names: Collection[str]) -> list[ast.Call]:
    """Where values that that figure is made of are put together, in the order of the text."""
    return [p for p in parts_of(script, names) if isinstance(p, ast.Call) and name_of(p) in _JOINING]


def parts_of(script: Script, names: Collection[str]) -> list[ast.expr]:
    """All that has a part in that figure, in the order of the text."""
    values = [
        value
        for tree in script.trees
        for node in ast.walk(tree.root)
        for name, value in entries(node)
        if name in names
    ]
    found = {p for value in values for p in script.values.closure(value) if isinstance(p, ast.expr)}
    return sorted(found, key=start)


def _divides(part: ast.expr) -> bool:
    if isinstance(part, ast.BinOp):
        return isinstance(part.op, ast.Div)
    return isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _MEANS
