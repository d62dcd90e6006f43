"""Reductions whose results nobody can have: written into a tensor that nobody holds, or never waited for."""

from __future__ import annotations

import ast

from grader.checks.source.reduction_results import reductions
from grader.checks.source.script import Script
from grader.checks.source.temporary_tensors import lost
from grader.model.trace import Site


def unwaited(script: Script, call: ast.Call) -> bool:
    """Whether a reduction runs on in the background, and its handle is thrown away or never looked at."""
    if script.values.constant(script.argument(call, "async_op")) is not True:
        return False
    tree = script.names.tree(call)
    above = tree.parent.get(call)
    if isinstance(above, ast.Expr):
        return True
    if (
        not isinstance(above, ast.Assign)
        or len(above.targets) != 1
        or not isinstance(above.targets[0], ast.Name)
    ):
        return False
    scope = tree.scope(call)
    return not any(tree.scope(load) is scope for load in tree.loads.get(above.targets[0].id, ()))


def dropped(script: Script, site: Site) -> bool:
    """Whether the reduction that was called from this line has no result that the script could go on with."""
    return any(
        script.location(call).path == site.path
        and call.lineno <= site.line <= (call.end_lineno or call.lineno)
        and (lost(script, call, tensor) or unwaited(script, call))
        for call, _name, tensor in reductions(script)
    )
