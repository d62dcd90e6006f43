"""Inputs and targets that are shuffled each for itself, so that no target stands beside its own input any more.

Asked only where a run has learned nothing of the inputs; it says where and what to write, and decides nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from itertools import pairwise

from grader.checks.source.metrics.recorded_losses import Cause
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import name_of, start

_DRAWS = ("randperm", "permutation", "shuffle", "sample")


def torn_pairs(script: Script) -> Cause | None:
    """The two places that draw an order each: calls of one helper, or two draws in one function."""
    for draw in sorted(script.called(*_DRAWS), key=start):
        tree = script.names.tree(draw)
        function = tree.function(draw)
        sites = [s.call for s in script.graph.sites(function)] if function is not None else []
        for orders in (
            sites,
            [d for d in script.called(*_DRAWS) if script.names.tree(d).function(d) is function],
        ):
            pair = _beside(script, orders)
            if pair is not None:
                one, other = pair
                return Cause(
                    (one, other, draw) if draw not in pair else pair,
                    f"{script.quote(one)} and {script.quote(other)} draw an order each, so that inputs lose their "
                    "targets. Draw one and take both by it: `order = torch.randperm(len(x))`, `x[order]`, `y[order]`.",
                )
    return None


def _beside(script: Script, orders: Iterable[ast.Call]) -> tuple[ast.Call, ast.Call] | None:
    """Two draws that one pass makes, of different things: in one block, outside or inside of the same loops."""
    calls = sorted(orders, key=start)
    for one, other in pairwise(calls):
        tree = script.names.tree(one)
        same = tree is script.names.tree(other) and tree.function(one) is tree.function(other)
        if not same or script.updates.loops_around(one) != script.updates.loops_around(other):
            continue
        if not script.updates.together(one, other):
            continue
        if _ordered(script, one) != _ordered(script, other):
            return one, other
    return None


def _ordered(script: Script, draw: ast.Call) -> str:
    """What an order is drawn for: the name it is given, what it picks from, or the argument of a helper."""
    above = script.names.tree(draw).parent.get(draw)
    if isinstance(above, ast.Assign):
        return ast.unparse(above.targets[0])
    if isinstance(above, ast.Subscript) and above.slice is draw:
        return ast.unparse(above.value)
    given = draw.args[0] if draw.args else None
    length = isinstance(given, ast.Call) and name_of(given) == "len"
    return ast.unparse(given.args[0]) if length and isinstance(given, ast.Call) else ast.unparse(draw)
