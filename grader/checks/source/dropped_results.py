"""Reductions whose results nobody can have: written into a tensor that nobody holds, or never waited for."""

from __future__ import annotations

import ast

from grader.checks.source.reduction_fixes import in_the_foreground, on_what_is_kept
from grader.checks.source.reduction_results import reductions
from grader.checks.source.script import Script
from grader.checks.source.temporary_tensors import lost
from grader.model.fix import Fix
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
    return bool(_dropped_at(script, site))


def kept_by(script: Script, site: Site) -> tuple[str, Fix | None]:
    """What makes the script go on with the result of the reduction that it throws away on this line."""
    for call, name, tensor in _dropped_at(script, site):
        if lost(script, call, tensor):
            return on_what_is_kept(script, call, name, tensor)
        return f"Leave `async_op=True` out at {script.at(call)}.", in_the_foreground(script, call)
    return "", None


def _dropped_at(script: Script, site: Site) -> list[tuple[ast.Call, str, ast.expr]]:
    return [
        (call, name, tensor)
        for call, name, tensor in reductions(script)
        if script.location(call).path == site.path
        and call.lineno <= site.line <= (call.end_lineno or call.lineno)
        and (lost(script, call, tensor) or unwaited(script, call))
    ]
