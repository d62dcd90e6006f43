"""What ends a training loop before its loader does: a `break` in it, or a limit on what it goes over.

Asked only where a run has shown that passes were left; it decides nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import LOOPS, ancestors, loop_above, name_of

_LIMITING = ("islice", "zip", "range")


def breaks_off(script: Script) -> bool:
    """Whether a break leaves a training loop that walks over its loader."""
    return any(
        isinstance(leaving, ast.Break)
        and loop_above(script.names.tree(draw.loop).parent, leaving) is draw.loop
        for draw in script.training.draws
        if draw.trains and draw.iterates
        for leaving in script.names.tree(draw.loop).exits
    )


def loop_breaks(script: Script) -> Iterator[ast.AST]:
    """The breaks of training loops over loaders, each with its test before it; else the limits on such loops."""
    limits: list[ast.AST] = []
    found = False
    for draw in (d for d in script.training.draws if d.trains):
        tree = script.names.tree(draw.loop)
        for leaving in tree.exits:
            above = list(ancestors(tree.parent, leaving, tree.function(leaving)))
            inner = next((a for a in above if isinstance(a, LOOPS)), None)
            if not isinstance(leaving, ast.Break) or inner is not draw.loop:
                continue
            found = True
            test = next((a.test for a in above[: above.index(inner)] if isinstance(a, ast.If)), None)
            yield from (leaving,) if test is None else (test, leaving)
        counted = getattr(draw.loop, "iter", None)
        if counted is not None:
            limits += [c for c in ast.walk(counted) if isinstance(c, ast.Call) and name_of(c) in _LIMITING]
    if not found:
        yield from limits[:1]
