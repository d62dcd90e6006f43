"""Which-is-better tests: comparisons as they are written, by an operator that is kept as a value, by a function.

Says which of two values the test takes for the better one where that is written down; `worst_kept` asks what they are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import walk

_TURNED = {"lt": "gt", "le": "ge", "less": "greater", "less_equal": "greater_equal"}
_LESS = {f"{home}.{name}" for home in ("operator", "numpy", "torch") for name in _TURNED}
_MORE = {f"{home}.{name}" for home in ("operator", "numpy", "torch") for name in _TURNED.values()}
_SIGNS: dict[type[ast.cmpop], str] = {ast.Lt: ">", ast.LtE: ">=", ast.Gt: "<", ast.GtE: "<="}


@dataclass(frozen=True, slots=True)
class BetterTest:
    """A test of two values.

    Attributes:
        node: the comparison, or the call of an operator. sides: what is compared.
        less: whether it holds where the first is the smaller one; None where several operators may stand there.
        chosen: where that is written; turned: the same the other way round.
    """

    node: ast.expr
    sides: tuple[ast.expr, ast.expr]
    less: bool | None
    chosen: ast.expr
    turned: str


def better_tests(script: Script, test: ast.expr) -> Iterator[BetterTest]:
    """Those of a test: written in it, held by a name, or given back by a function it calls."""
    for part in walk(test):
        results: list[ast.AST] = [part]
        if isinstance(part, ast.Call):
            results += [r for t in script.graph.targets(part) for r in walk(t) if isinstance(r, ast.Return)]
        elif isinstance(part, ast.Name):
            results = list(script.values.origins(part))
        for result in results:
            whole = [result] if isinstance(result, ast.Compare) or result is part else list(walk(result))
            for node in whole:
                found = _compared(node) or _called(script, node)
                if found is not None:
                    yield found


def _compared(node: ast.AST) -> BetterTest | None:
    """`value < best`."""
    if not isinstance(node, ast.Compare) or type(node.ops[0]) not in _SIGNS:
        return None
    sides = (node.left, node.comparators[0])
    turned = f"{ast.unparse(sides[0])} {_SIGNS[type(node.ops[0])]} {ast.unparse(sides[1])}"
    return BetterTest(node, sides, isinstance(node.ops[0], ast.Lt | ast.LtE), node, turned)


def _called(script: Script, node: ast.AST) -> BetterTest | None:
    """`self.better(value, best)` of an operator, or of a `lambda` that compares what it is given."""
    if not isinstance(node, ast.Call) or len(node.args) != 2 or node.keywords:
        return None
    kinds = [kind for origin in script.values.origins(node.func) if (kind := _kind(script, origin))]
    if not kinds:
        return None
    less = {kind[0] for kind in kinds}
    _, chosen, turned = kinds[0]
    return BetterTest(
        node, (node.args[0], node.args[1]), less.pop() if len(less) == 1 else None, chosen, turned
    )


def _kind(script: Script, origin: ast.AST) -> tuple[bool, ast.expr, str] | None:
    """Whether an operator asks for the smaller value, where it is written, and the opposite one; None of others."""
    if isinstance(origin, ast.Lambda):
        inner, given = _compared(origin.body), [a.arg for a in origin.args.args]
        names = [ast.unparse(side) for side in inner.sides] if inner is not None else []
        if inner is None or sorted(names) != sorted(given):
            return None
        return (inner.less is True) is (names == given), inner.node, inner.turned
    name = script.names.qualified(origin) if isinstance(origin, ast.Name | ast.Attribute) else None
    if name is None or name not in _LESS | _MORE or not isinstance(origin, ast.expr):
        return None
    last = name.rpartition(".")[2]
    opposite = _TURNED.get(last) or next(less for less, more in _TURNED.items() if more == last)
    written = ast.unparse(origin)
    turned = f"{written.rpartition('.')[0]}.{opposite}" if "." in written else opposite
    return name in _LESS, origin, turned
