"""Whether a number is a loss or a share of right answers: by how it is made, else by what it is called.

What is subtracted or negated may be better either way, and is neither.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from grader.checks.source.calls.arguments import called_on
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import VARIABLES, name_of

LOSS, ACCURACY = "loss", "accuracy"
_HANDING_ON = {
    "item", "float", "cpu", "detach", "double", "mean", "sum", "round", "tolist", "numpy", "clone", "to", "div", "mul",
    "tensor", "as_tensor", "stack", "cat", "div_", "mul_", "fmean",
}  # fmt: skip
_FUNCTIONAL = "torch.nn.functional."
_RIGHT = ("eq", "equal", "accuracy_score")
_SIGN = "sign"
"""Of what has lost the direction in which it is better."""
_CALLED = {
    LOSS: ("loss", "losses", "nll", "ppl", "perplexity"),
    ACCURACY: ("acc", "accuracy", "top1", "correct"),
}
_MAX_DEPTH = 12


@dataclass(frozen=True, slots=True)
class FigureKind:
    """`LOSS`, `ACCURACY`, or "" unknown; `sure` where it is known by how the number is made."""

    kind: str
    sure: bool = False


def kind_of(script: Script, node: ast.expr) -> FigureKind:
    """What a number is."""
    made = _made(script, node, 0)
    if made:
        return FigureKind("" if made == _SIGN else made, made != _SIGN)
    while isinstance(node, ast.Call) and name_of(node) in _HANDING_ON:
        inner = called_on(node) or next(iter(node.args), None)
        if inner is None:
            break
        node = inner
    return FigureKind(
        kind_of_name(ast.unparse(node)) if isinstance(node, (*VARIABLES, ast.Subscript)) else ""
    )


def kind_of_name(name: str) -> str:
    """What something is that is called so, such as `val_loss`; "" for other names, and for those that say both."""
    words = set(re.split(r"[^a-z0-9]+", re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()))
    found = [kind for kind, called in _CALLED.items() if words & set(called)]
    return found[0] if len(found) == 1 else ""


def _made(script: Script, node: ast.AST, depth: int) -> str:
    if depth > _MAX_DEPTH:
        return ""
    found = {kind for part in _parts(script, node) if (kind := _of(script, part, depth + 1))}
    return found.pop() if len(found) == 1 else _SIGN if found else ""


def _parts(script: Script, node: ast.AST) -> Iterator[ast.AST]:
    """What a value was, with what a running sum grew by."""
    yield from script.values.origins(node)
    if isinstance(node, ast.Name):
        tree = script.names.tree(node)
        for made in tree.definitions.get(tree.scope(node), {}).get(node.id, []):
            if isinstance(made.node, ast.AugAssign) and isinstance(made.node.op, ast.Add):
                yield made.node.value


def _of(script: Script, node: ast.AST, depth: int) -> str:
    if isinstance(node, ast.Compare):
        return ACCURACY if isinstance(node.ops[0], ast.Eq) else ""
    if isinstance(node, ast.UnaryOp) or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)):
        return _SIGN
    if isinstance(node, ast.BinOp):
        sides = (node.left,) if isinstance(node.op, ast.Div | ast.FloorDiv) else (node.left, node.right)
        found = {kind for side in sides if (kind := _made(script, side, depth))}
        return found.pop() if len(found) == 1 else _SIGN if found else ""
    if not isinstance(node, ast.Call):
        return ""
    name, dotted = name_of(node), script.names.qualified(node.func) or ""
    if dotted.startswith(_FUNCTIONAL) and ("loss" in name or "entropy" in name):
        return LOSS
    makers = (
        script.names.qualified(o.func) or ""
        for o in script.values.origins(node.func)
        if isinstance(o, ast.Call)
    )
    if any(maker.startswith("torch.nn.") and maker.endswith("Loss") for maker in makers):
        return LOSS
    if name in _RIGHT:
        return ACCURACY
    if name not in _HANDING_ON:
        return ""
    owner = called_on(node) if "." not in dotted else None
    handed = owner if owner is not None else next(iter(node.args), None)
    return _made(script, handed, depth) if handed is not None else ""
