"""What an expression comes to by plain arithmetic, where it is known what its parts stand for. Runs nothing."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from itertools import pairwise
from typing import Any

_ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Mod: operator.mod,
    ast.FloorDiv: operator.floordiv,
}  # fmt: skip
_COMPARED: dict[type, Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip


def worked_out(node: ast.expr, told: Callable[[ast.expr], float | None]) -> float | None:
    """The value of arithmetic, comparisons and `not`, `and`, `or`; None where a part that it hangs on is not known.

    `told`: what a part stands for, asked before the part itself is worked out; None where it does not say.
    """
    if (known := told(node)) is not None:
        return known
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = worked_out(node.operand, told)
        return None if inner is None else not inner
    if isinstance(node, ast.BoolOp):
        parts = [worked_out(part, told) for part in node.values]
        decisive = isinstance(node.op, ast.Or)
        if any(part is not None and bool(part) is decisive for part in parts):
            return decisive
        return None if None in parts else not decisive
    if isinstance(node, ast.BinOp):
        a, b = (worked_out(side, told) for side in (node.left, node.right))
        work = _ARITHMETIC.get(type(node.op))
        if work is None or a is None or b is None or (not b and isinstance(node.op, ast.Mod | ast.FloorDiv)):
            return None
        result: float = work(a, b)
        return result
    if isinstance(node, ast.Compare) and all(type(op) in _COMPARED for op in node.ops):
        sides = [worked_out(side, told) for side in (node.left, *node.comparators)]
        known_sides = [side for side in sides if side is not None]
        pairs = zip(node.ops, pairwise(known_sides), strict=False)
        return (
            all(_COMPARED[type(op)](a, b) for op, (a, b) in pairs) if len(known_sides) == len(sides) else None
        )
    return None
