"""Figures of an epoch that a script reports by name, the lines that compute one, and what a pass has counted."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable

from grader.checks.source.script import Script
from grader.checks.source.syntax.arithmetic import QUOTIENTS
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import end, name_of, start

FIGURES = ("accuracy", "val_accuracy", "val_acc", "val_loss", "train_loss", "loss")
_MEANS = ("mean", *QUOTIENTS)
_COMPARING = ("eq", "equal")
_COUNTING = ("len", "numel", "size")
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


def share_of_right(script: Script, at: ast.AST) -> str:
    """The right predictions by the samples, as counted in a validation loop before a place; "" where none is there."""
    tree, edits = script.names.tree(at), Edits(script)
    for draw in script.training.draws:
        near = script.names.tree(draw.loop) is tree and tree.scope(draw.loop) is tree.scope(at)
        if not draw.evaluates or not near or end(draw.loop) > start(at):
            continue
        added = [n for n in ast.walk(draw.loop) if isinstance(n, ast.AugAssign) and isinstance(n.op, ast.Add)]
        right = [n.target for n in added if any(compares(part) for part in ast.walk(n.value))]
        size = [n.target for n in added if isinstance(n.value, ast.Call) and name_of(n.value) in _COUNTING]
        if len(right) == 1 and len(size) == 1:
            return f"float({edits.text(right[0])} / {edits.text(size[0])})"
    return ""


def compares(node: ast.AST) -> bool:
    """Whether predictions are held against labels: `a == b`, `a.eq(b)`."""
    if isinstance(node, ast.Compare):
        return isinstance(node.ops[0], ast.Eq)
    return isinstance(node, ast.Call) and name_of(node) in _COMPARING
