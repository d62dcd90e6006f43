"""Shares that were gathered one rank after the other, and that are held against what stands in the data set's order.

Ranks that have every N-th sample bring the shares in another order: predictions then meet the labels of other samples.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from grader.checks.source.calls.arguments import arguments_of
from grader.checks.source.metrics.recorded_losses import Cause
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import name_of

_FILLED = {
    "all_gather": "tensor_list",
    "all_gather_object": "object_list",
    "gather": "gather_list",
    "gather_object": "object_gather_list",
}
_JOINING = (
    "cat",
    "chain",
    "concat",
    "concatenate",
    "from_iterable",
    "hstack",
    "row_stack",
    "stack",
    "sum",
    "vstack",
)
_COMPARING = (
    "accuracy", "accuracy_score", "balanced_accuracy_score", "cross_entropy", "eq", "f1_score", "log_loss", "nll_loss",
)  # fmt: skip


def in_order_of_ranks(script: Script, figure: Sequence[ast.expr]) -> Iterable[Cause]:
    """Where parts of a figure are joined shares, and what they are compared with was not gathered."""
    filled = {
        ast.unparse(given)
        for name, argument in _FILLED.items()
        for call in script.called(name)
        if isinstance(given := script.argument(call, argument), ast.expr)
    }
    made = [n for n in figure if isinstance(n, ast.Call) and _joins(n, filled)]
    for one, other in (pair for node in figure if made for pair in _compared(node)):
        joined = next((call for call in made if call in script.values.closure(one)), None)
        if joined is None or _gathered(script, other, filled):
            continue
        at, what = script.at(joined), script.quote(joined)
        yield Cause(
            (joined, one),
            "Count right predictions on each rank against the labels of its own batches, and `all_reduce` the counts; "
            f"or gather those labels in the same way, and compare with them instead of {script.quote(other)}.",
            f"{at} puts the ranks' shares one after the other, {what}, and {script.at(one)} holds them against "
            f"{script.quote(other)}, which was not gathered so: where each rank has every N-th sample, predictions "
            "meet labels of others.",
        )


def _joins(call: ast.Call, filled: set[str]) -> bool:
    """Whether a call puts a list that ranks filled into one row: along the first dimension, not side by side."""
    if name_of(call) not in _JOINING or not call.args:
        return False
    if name_of(call) == "sum" and len(call.args) < 2:
        return False  # adds up
    whole = call.args[0].value if isinstance(call.args[0], ast.Starred) else call.args[0]
    along = [*call.args[1:2], *(k.value for k in call.keywords if k.arg in ("dim", "axis"))]
    first = name_of(call) in ("chain", "sum") or all(
        isinstance(n, ast.Constant) and n.value == 0 for n in along
    )
    return ast.unparse(whole) in filled and first


def _compared(node: ast.expr) -> Iterable[tuple[ast.expr, ast.expr]]:
    """Both sides of a comparison of predictions with labels, either way round."""
    sides: list[ast.expr] = []
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq):
        sides = [node.left, node.comparators[0]]
    elif isinstance(node, ast.Call) and name_of(node) in _COMPARING:
        of = [node.func.value] if isinstance(node.func, ast.Attribute) and name_of(node) == "eq" else []
        sides = [*of, *arguments_of(node)][:2]
    if len(sides) == 2 and not any(isinstance(side, ast.Constant) for side in sides):
        yield sides[0], sides[1]
        yield sides[1], sides[0]


def _gathered(script: Script, value: ast.expr, filled: set[str]) -> bool:
    """Whether what ranks brought together has a part in a value: it may stand in the same order."""
    return any(
        (isinstance(n, ast.Call) and "gather" in name_of(n))
        or (isinstance(n, ast.Name | ast.Attribute) and ast.unparse(n) in filled)
        for n in (value, *script.values.closure(value))
    )
