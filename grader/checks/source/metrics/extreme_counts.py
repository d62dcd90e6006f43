"""Counts of which a reduction keeps the largest or smallest, where their sum is meant."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.metrics.reported_figures import compares
from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax.nodes import default_of, name_of, names_in, walk

_KEEPING_ONE = {"MAX", "MIN", "PRODUCT"}


def extreme_of_counts(script: Script, call: ast.Call, tensor: ast.expr) -> tuple[str, ast.Call] | None:
    """The operation (`MAX`) by which one rank's count takes the place of the sum over ranks, and the call to mend.

    The call is that of a helper where the count and the operation are handed to one.
    """
    op = script.argument(call, "op")
    for site, given_op, given in ((call, op, tensor), *_handed(script, call, op, tensor)):
        names = (
            {name_of(o) for o in script.values.origins(given_op)} if isinstance(given_op, ast.expr) else set()
        )
        if names and names <= _KEEPING_ONE and given_op is not UNKNOWN and _counts_right(script, site, given):
            return min(names), site
    return None


def _handed(
    script: Script, call: ast.Call, op: ast.expr | None, tensor: ast.expr
) -> Iterable[tuple[ast.Call, ast.expr | None, ast.expr]]:
    """For a helper that is handed the tensor: each call of it, with the operation that is meant there."""
    function = script.names.tree(call).function(call)
    if function is None or not isinstance(tensor, ast.Name):
        return
    spec = function.args
    parameters = {a.arg: a for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)}
    for site in script.graph.sites(function) if tensor.id in parameters else ():
        given = script.graph.bound(site, function, tensor.id)
        meant = op
        if isinstance(op, ast.Name) and op.id in parameters:
            bound = script.graph.bound(site, function, op.id)
            meant = default_of(function, parameters[op.id]) if bound is None else bound
        if given is not None and given is not UNKNOWN:
            yield site.call, meant, given


def _counts_right(script: Script, call: ast.Call, tensor: ast.expr) -> bool:
    """Whether right predictions are counted into a tensor, where the call stands."""
    held = names_in(tensor)
    held |= {n.id for n in script.values.closure(tensor) if isinstance(n, ast.Name)}
    for node in walk(script.names.tree(call).scope(call)):
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
            target = node.target.value if isinstance(node.target, ast.Subscript) else node.target
            counts = any(compares(n) for n in walk(node.value))
            if counts and isinstance(target, ast.Name) and target.id in held:
                return True
    return False
