"""Whether ranks pass a line one after another, or after one of them has done its work for all.

Knows barriers, helpers with barriers, locks and context managers that let one rank go first. Where the text only hints
at an order, the order is believed.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from grader.checks.source.script import Script
from grader.checks.source.syntax_nodes import name_of, start

_ORDERLY = ("first", "lock", "main_process", "rank_zero", "rank0", "master", "sequential", "order", "barrier")


def in_turn(script: Script, call: ast.Call, work: Sequence[ast.Call], words: tuple[str, ...]) -> bool:
    """Whether the ranks pass here one after another, or after one of them has done the work.

    Args:
        work: all calls that do this kind of work. words: in names of functions that do it, known or not.
    """
    tree = script.names.tree(call)
    above: ast.AST | None = call
    while above is not None:
        items = above.items if isinstance(above, ast.With | ast.AsyncWith) else []
        if any(_orderly(script, i.context_expr) for i in items):
            return True
        above = tree.parent.get(above)
    function = tree.function(call)
    scope: ast.AST = function if function is not None else tree.root
    waits = [c for c in tree.calls_within(scope) if _waits(script, c) and tree.function(c) is function]
    before = [c for c in waits if start(c) < start(call)]
    if any(script.guards.partial(c) for c in before):
        return True  # the others wait, one goes first
    for wait in before:
        earlier = [c for c in tree.calls_within(scope) if start(c) < start(wait) and script.guards.partial(c)]
        if any(_does(script, c, work, words) for c in earlier):
            return True  # one rank has done everything before the others pass the barrier
    if function is None:
        return False
    sites = [s.call for s in script.graph.sites(function)]
    return bool(sites) and all(
        in_turn(script, s, work, words) for s in sites if script.names.tree(s).function(s) is not function
    )


def _orderly(script: Script, context: ast.expr) -> bool:
    named = context.func if isinstance(context, ast.Call) else context
    name = name_of(named).lower()
    if any(word in name for word in _ORDERLY):
        return True
    found = script.graph.definition(named)
    return found is not None and bool(script.collectives.inside(found))


def _waits(script: Script, call: ast.Call) -> bool:
    """A barrier of the group, of `multiprocessing`, or of a helper."""
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("wait", "wait_for_everyone", "barrier"):
        return True
    return any(
        c.name in ("barrier", "monitored_barrier", "all_reduce", "broadcast")
        for c in script.collectives.of(call)
    )


def _does(script: Script, call: ast.Call, work: Sequence[ast.Call], words: tuple[str, ...]) -> bool:
    """Whether a call does the work, itself or in the submission's own function that it runs."""
    if call in work or any(word in name_of(call).lower() for word in words):
        return True
    return any(script.names.tree(c).function(c) in script.graph.targets(call) for c in work)
