"""A process group that is joined after what needs it: the line that starts it, and the edit that moves it up."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from grader.checks.source.collectives.collective_calls import INIT
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import earlier_in_block, names_bound_in, names_in
from grader.model.finding import Location
from grader.model.fix import Fix


def moved_up(script: Script, reached: Sequence[Location]) -> tuple[str, Fix | None]:
    """Advice and edits for a run that failed in lines which a stack names; "" where the script starts no group.

    Args:
        reached: lines of the stack, those of callers included.
    """
    started = script.calls(INIT)
    if len(started) != 1:
        return "", None
    call = started[0]
    tree, edits = script.names.tree(call), Edits(script)
    statement = tree.statement(call)
    lines = {place.line for place in reached if place.path == tree.path}
    earlier = earlier_in_block(tree.parent, statement)
    needs = next(
        (s for s in earlier if any(s.lineno <= n <= (s.end_lineno or s.lineno) for n in lines)), None
    )
    told = f"{script.quote(call)} comes too late, at {script.at(call)}"
    if needs is None or not isinstance(statement, ast.Expr):
        return f"{told}: move it above this line, to the start of what every rank runs.", None
    between = earlier[earlier.index(needs) :]
    stored = names_bound_in(*between)
    if stored & names_in(statement):
        edits.give_up()
    edits.before(needs, edits.text(statement))
    edits.remove(statement)
    return f"{told}: move it above {script.at(needs)}.", edits.fix("Joins the group before it is needed.")
