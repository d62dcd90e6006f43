"""Arithmetic as a text writes it: what divides or multiplies, and whether two expressions are one number."""

from __future__ import annotations

import ast
from typing import TypeGuard

from grader.checks.source.syntax.nodes import UNKNOWN
from grader.checks.source.values.sources import Values

_NEW_QUOTIENTS = ("div", "divide", "true_divide")
NEW_SCALED = (*_NEW_QUOTIENTS, "mul", "multiply")
"""Methods and functions of torch that divide or multiply, and leave their own tensor as it is."""
QUOTIENTS = (*_NEW_QUOTIENTS, *(f"{name}_" for name in _NEW_QUOTIENTS))
SCALING = (*NEW_SCALED, *(f"{name}_" for name in NEW_SCALED))
"""The same with those that change their tensor."""


def same_value(values: Values, one: ast.expr, other: ast.expr) -> bool:
    """Whether two expressions are one value: by how they are written, by what it is, or by where it comes from."""
    if ast.unparse(one) == ast.unparse(other):
        return True
    number = values.constant(one)
    if number is not UNKNOWN:
        return number == values.constant(other)
    made = {o for o in values.origins(one) if not isinstance(o, ast.arg)}
    return bool(made) and made == {o for o in values.origins(other) if not isinstance(o, ast.arg)}


def is_quotient(node: ast.AST | None) -> TypeGuard[ast.BinOp]:
    """`a / b`."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)


def is_scaled(node: ast.AST | None) -> TypeGuard[ast.BinOp]:
    """`a / b` and `a * b`."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Mult)


def scales(node: ast.AST | None) -> TypeGuard[ast.AugAssign]:
    """`a /= b` and `a *= b`."""
    return isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div | ast.Mult)
