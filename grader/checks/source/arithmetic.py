"""Arithmetic as a text writes it: what divides or multiplies, and whether two expressions are one number."""

from __future__ import annotations

import ast
from typing import TypeGuard

NEW_QUOTIENTS = ("div", "divide", "true_divide")
NEW_SCALED = (*NEW_QUOTIENTS, "mul", "multiply")
"""Methods and functions of torch that divide or multiply, and leave their own tensor as it is."""
QUOTIENTS = (*NEW_QUOTIENTS, *(f"{name}_" for name in NEW_QUOTIENTS))
SCALING = (*NEW_SCALED, *(f"{name}_" for name in NEW_SCALED))
"""The same with those that change their tensor."""


def is_quotient(node: ast.AST | None) -> TypeGuard[ast.BinOp]:
    """`a / b`."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)


def is_scaled(node: ast.AST | None) -> TypeGuard[ast.BinOp]:
    """`a / b` and `a * b`."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Mult)


def scales(node: ast.AST | None) -> TypeGuard[ast.AugAssign]:
    """`a /= b` and `a *= b`."""
    return isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div | ast.Mult)
