"""Whether ranks pass a line one after another, or after one of them has done its work for all.

Knows barriers, helpers with barriers, locks and context managers that let one rank go first. Where the text only hints
at an order, the order is believed; where it shows that rank 0 alone waits, the others pass together.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from grader.checks.source.ranks.rank_sets import RankSet
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import WITHS, ancestors, name_of, start
from grader.checks.source.syntax.tree import Tree

_ORDERLY = ("first", "lock", "main_process", "rank_zero", "rank0", "master", "sequential", "order", "barrier")


def in_turn(script: Script, call: ast.Call, work: Sequence[ast.Call], words: tuple[str, ...]) -> bool:
    """Whether the ranks pass here one after another, or after one of them has done the work.

    Args:
        work: all calls that do this kind of work. words: in names of functions that do it, known or not.
    """
    tree = script.names.tree(call)
    if any(_orderly(script, entered) for entered in _entered_around(tree, call)):
        return True
    function = tree.function(call)
    scope: ast.AST = function if function is not None else tree.root
    waits = [c for c in tree.calls_within(scope) if _waits(script, c) and tree.function(c) is function]
    before = [c for c in waits if start(c) < start(call)]
    if any(script.guards.partial(c) for c in before) and not _waits_of_main(script, before):
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


def under_lock(script: Script, call: ast.Call) -> bool:
    """Whether a call stands in a block that a lock guards, `with FileLock(path):`: one process after another."""
    for above in ancestors(script.names.tree(call).parent, call):
        for item in above.items if isinstance(above, ast.With | ast.AsyncWith) else ():
            made = (item.context_expr, *script.values.origins(item.context_expr))
            if any("lock" in name_of(getattr(one, "func", one)).lower() for one in made):
                return True
    return False


def main_waits(script: Script, call: ast.Call) -> ast.Call | None:
    """The wait of rank 0 alone that stands before a call, also in the context manager around it; None for no such."""
    tree = script.names.tree(call)
    function = tree.function(call)
    scope: ast.AST = function if function is not None else tree.root
    waits = [c for c in tree.calls_within(scope) if tree.function(c) is function and start(c) < start(call)]
    found = _waits_of_main(script, [c for c in waits if _waits(script, c)])
    for entered in _entered_around(tree, call):
        found = found or _waits_of_main(script, _entering(script, entered))
    return found[0] if found else None


def _entered_around(tree: Tree, call: ast.Call) -> Iterator[ast.expr]:
    """What the `with` statements around a call enter, the innermost first."""
    blocks = (above for above in ancestors(tree.parent, call) if isinstance(above, WITHS))
    return (item.context_expr for block in blocks for item in block.items)


def _waits_of_main(script: Script, waits: Sequence[ast.Call]) -> list[ast.Call]:
    """Those of some ranks only, where all of them are rank 0's."""
    guarded = [(c, g.condition) for c in waits if (g := script.guards.partial(c)) is not None]
    main = all(condition.which is RankSet.MAIN and condition.sure for _, condition in guarded)
    return [c for c, _ in guarded] if main else []


def _entering(script: Script, context: ast.expr) -> list[ast.Call]:
    """What a context manager written as a generator waits for before its block."""
    found = script.graph.definition(context.func if isinstance(context, ast.Call) else context)
    tree = script.names.tree(found) if found is not None else None
    handed = tree.yields.get(found, ()) if tree is not None and found is not None else ()
    if tree is None or found is None or not handed:
        return []
    return [c for c in tree.calls_within(found) if start(c) < start(handed[0]) and _waits(script, c)]


def _orderly(script: Script, context: ast.expr) -> bool:
    if _waits_of_main(script, _entering(script, context)):
        return False
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
