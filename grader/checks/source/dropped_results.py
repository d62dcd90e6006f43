"""Reductions whose results nobody can have: written into a tensor that nobody holds, never waited for, or left out."""

from __future__ import annotations

import ast

from grader.checks.source.causes import stands_at
from grader.checks.source.divergence import Divergence
from grader.checks.source.guard_fixes import above_own_test
from grader.checks.source.reduction_fixes import in_the_foreground, on_what_is_kept
from grader.checks.source.reduction_results import reductions
from grader.checks.source.script import Script
from grader.checks.source.temporary_tensors import lost
from grader.model.fix import Fix
from grader.model.trace import Collective, Site


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


def kept(script: Script, calls: tuple[Collective, ...]) -> tuple[Collective, ...]:
    """Without reductions whose results the script throws away: they bring nothing together."""
    places = {call.site for call in calls if call.site is not None}
    thrown = {site for site in places if dropped(script, site)}
    return tuple(call for call in calls if call.site not in thrown)


def kept_by(script: Script, site: Site) -> tuple[str, Fix | None]:
    """What makes the script go on with the result of the reduction that it throws away, or leaves out, on this line."""
    for call, name, tensor in _dropped_at(script, site):
        if lost(script, call, tensor):
            return on_what_is_kept(script, call, name, tensor)
        return f"Leave `async_op=True` out at {script.at(call)}.", in_the_foreground(script, call)
    return _out_of_own_test(script, site), None


def _out_of_own_test(script: Script, site: Site) -> str:
    """For a reduction on this line that a rank comes to by its own share's numbers alone; "" for others."""
    divergence = Divergence(script)
    for call, inside in script.collectives.running.items():
        tree = script.names.tree(call)
        branch = tree.parent.get(tree.statement(call))
        if not isinstance(branch, ast.If) or not any(stands_at(script, c.call, site) for c in inside):
            continue
        apart = divergence.of(branch.test)
        if apart is not None and apart.kind == "batch":
            return above_own_test(script, call, branch)
    return ""


def _dropped_at(script: Script, site: Site) -> list[tuple[ast.Call, str, ast.expr]]:
    return [
        (call, name, tensor)
        for call, name, tensor in reductions(script)
        if script.location(call).path == site.path
        and call.lineno <= site.line <= (call.end_lineno or call.lineno)
        and (lost(script, call, tensor) or unwaited(script, call))
    ]
