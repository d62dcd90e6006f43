"""Reductions whose results nobody has: written into a tensor that nobody holds, not waited for, left out, or unread."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from grader.checks.phrases import listed
from grader.checks.source.causes import stands_at
from grader.checks.source.collectives.aliased_slots import slots_at
from grader.checks.source.collectives.gathered_lists import all_parts, one_part_read
from grader.checks.source.collectives.reduction_fixes import in_the_foreground, on_what_is_kept
from grader.checks.source.collectives.reduction_results import reductions
from grader.checks.source.ranks.divergence import Divergence
from grader.checks.source.ranks.guard_fixes import above_own_test
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import ancestors
from grader.checks.source.values.temporary_tensors import lost, runs_on
from grader.model.call_site import Site
from grader.model.fix import Fix

if TYPE_CHECKING:
    from grader.model.trace import Collective


def unwaited(script: Script, call: ast.Call) -> bool:
    """Whether a reduction runs on in the background, and its handle is thrown away or never looked at."""
    if not runs_on(script, call):
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
    # A function made beside it, which waits when it is called, looks at the same name.
    scope = tree.scope(call)
    loads = tree.loads.get(above.targets[0].id, ())
    return not any(tree.scope(load) is scope or scope in ancestors(tree.parent, load) for load in loads)


def dropped(script: Script, site: Site) -> bool:
    """Whether the reduction that was called from this line has no result that the script could go on with."""
    one_part = any(stands_at(script, read.call, site) for read in one_part_read(script))
    return one_part or bool(_dropped_at(script, site)) or slots_at(script, site) is not None


def kept(script: Script, calls: tuple[Collective, ...]) -> tuple[Collective, ...]:
    """Without reductions whose results the script throws away: they bring nothing together."""
    places = {call.site for call in calls if call.site is not None}
    thrown = {site for site in places if dropped(script, site)}
    return tuple(call for call in calls if call.site not in thrown)


def kept_by(script: Script, site: Site) -> tuple[str, Fix | None, tuple[ast.AST, ...]]:
    """What makes a script go on with the result of the reduction on this line, which it throws away or reads too early.

    Returns:
        What to write, as edits where that is certain, and places beside that line which this is about.
    """
    for call, name, tensor in _dropped_at(script, site):
        if lost(script, call, tensor):
            return (*on_what_is_kept(script, call, name, tensor), ())
        return f"Leave `async_op=True` out at {script.at(call)}.", in_the_foreground(script, call), ()
    if (slots := slots_at(script, site)) is not None:
        return slots.cause(script), slots.fix, (slots.made,)
    for one in one_part_read(script):
        if stands_at(script, one.call, site):
            return all_parts(script, one), None, (one.use,)
    for call, _, tensor in reductions(script):
        if stands_at(script, call, site) and runs_on(script, call):
            waits = tuple(script.called("wait"))
            later = f" ({listed([script.at(wait) for wait in waits])} may come too late)" if waits else ""
            hint = (
                f"Call `wait()` on what {script.quote(call)} returns before anything reads {script.quote(tensor)}"
                f"{later}: until it has come back, the tensor holds this rank's own values."
            )
            return hint, None, waits
    return _out_of_own_test(script, site), None, ()


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
