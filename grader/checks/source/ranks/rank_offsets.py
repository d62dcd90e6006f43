"""Positions that begin at a rank's own place and move on: `position = batch * rank`, and `position += step`.

Without that place, `position - batch * rank`, they are counted alike by all ranks, and how far they are tells of no
rank: all of them come by. Where a part can't be followed, nothing is claimed.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Hashable

from grader.checks.source.syntax.nodes import READS, UNKNOWN, walk
from grader.checks.source.values.sources import Values

_Terms = Counter[frozenset[Hashable]]
"""What the rank is multiplied by, each as its factors, the rank's own source among them."""
_MAX_DEPTH = 6


class RankOffsets:
    """All files of a submission; `is_rank`: whether an expression has a rank in it."""

    def __init__(self, values: Values, is_rank: Callable[[ast.AST], object]) -> None:
        self._values, self._is_rank = values, is_rank

    def gone(self, node: ast.AST) -> bool:
        """Whether both sides of a difference hold the same share of the rank."""
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Sub):
            return False
        left = self._terms(node.left, 0)
        return bool(left) and left == self._terms(node.right, 0)

    def moves_on(self, node: ast.AST) -> bool:
        """Whether a variable in an expression is such a position."""
        return any(self._is_moved(n) for n in walk(node) if isinstance(n, READS) and self._is_rank(n))

    def _is_moved(self, node: ast.expr) -> bool:
        origins = self._values.origins(node)
        moved = [one for o in origins if (one := _moved_by(node, o)) is not None]
        starts = (part for o in origins if _moved_by(node, o) is None for part in walk(o))
        begins = any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult) for part in starts)
        return begins and bool(moved) and not any(map(self._is_rank, moved))

    def _terms(self, node: ast.AST, depth: int) -> _Terms | None:
        """The parts of a sum that the rank is in; None where one of them is no plain product."""
        if not self._is_rank(node):
            return Counter()
        if depth > _MAX_DEPTH:
            return None
        if isinstance(node, READS):
            return self._of_variable(node, depth + 1)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
            left, right = self._terms(node.left, depth + 1), self._terms(node.right, depth + 1)
            if left is None or right is None:
                return None
            if isinstance(node.op, ast.Add):
                return left + right
            if isinstance(node.op, ast.Sub):
                return left if not right else None
            if left and right:
                return None
            factor = self._factor(node.right if left else node.left)
            return Counter({term | {factor}: times for term, times in (left + right).items()})
        return Counter([frozenset([self._factor(node)])])

    def _of_variable(self, node: ast.expr, depth: int) -> _Terms | None:
        """A variable has the share that it began with, as long as what moves it on has none."""
        found: list[_Terms | None] = []
        for origin in self._values.origins(node):
            moved = _moved_by(node, origin)
            if moved is not None and self._is_rank(moved):
                return None
            if moved is None:
                plain = origin is node or not isinstance(origin, (ast.BinOp, *READS))
                found.append(
                    Counter([frozenset([self._factor(node)])]) if plain else self._terms(origin, depth)
                )
        return found[0] if found and all(one == found[0] for one in found) else None

    def _factor(self, node: ast.expr | ast.AST) -> Hashable:
        number, made = self._values.constant(node), self._values.origins(node)
        if number is not UNKNOWN:
            return number
        return ast.unparse(node) if made == (node,) else frozenset(made)


def _moved_by(node: ast.expr, origin: ast.AST) -> ast.expr | None:
    """What a variable is moved on by, where it is: `position += step`, `position = position + step`."""
    if isinstance(origin, ast.AugAssign):
        return origin.value if isinstance(origin.op, ast.Add | ast.Sub) else None
    if isinstance(origin, ast.BinOp) and isinstance(origin.op, ast.Add | ast.Sub):
        return origin.right if ast.unparse(origin.left) == ast.unparse(node) else None
    return None
