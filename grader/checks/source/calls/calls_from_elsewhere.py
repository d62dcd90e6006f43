"""Files without the line that starts them: functions that only another file calls, and which of them every rank runs.

What a helper is called under, nobody can tell here. A function in which the ranks meet is another matter: whoever calls
it has to call it on every rank.
"""

from __future__ import annotations

import ast

from grader.checks.source.calls.ways import ways_to
from grader.checks.source.collectives.collective_calls import INIT
from grader.checks.source.ranks.rank_sets import RankSet
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import FUNCTIONS, Function


def entry_on_every_rank(script: Script, node: ast.AST) -> Function | None:
    """The function for every rank that leads to a node with no test of the rank on the way; None elsewhere."""
    return _entry(script, node) if lacks_start(script) else None


def given_from_elsewhere(script: Script, value: ast.expr) -> bool:
    """Whether a value is what a function was given that no line of these files calls."""
    origins = script.values.origins(value)
    return bool(origins) and lacks_start(script) and all(isinstance(o, ast.arg) for o in origins)


def said_of_entry(script: Script, node: ast.AST) -> str:
    """The sentence that says why such a node is taken to run on every rank; "" where a line of these files runs it."""
    entry = None if script.guards.on_every_rank(node) else entry_on_every_rank(script, node)
    if entry is None:
        return ""
    return (
        f" No line here calls `{entry.name}`; the ranks meet in it, so whoever does calls it on each of them."
    )


def lacks_start(script: Script) -> bool:
    """Whether nothing in these files runs any of their functions, or starts a group or trains, by itself."""
    if script.graph.spawn_sites:
        return False
    for tree in script.trees:
        for call in tree.calls:
            if tree.function(call) is not None or tree.enclosing_class(call) is not None:
                continue
            runs = any(isinstance(target, FUNCTIONS) for target in script.graph.targets(call))
            if runs or call in script.training.backwards or script.names.qualified(call.func) == INIT:
                return False
    return True


def _entry(script: Script, node: ast.AST) -> Function | None:
    def passes(place: ast.AST) -> bool:
        guards = script.guards.around(place)
        return not any(g.condition.partial or g.condition.which is RankSet.ALONE for g in guards)

    for place in filter(passes, ways_to(script.names, script.graph, node, goes_on=passes)):
        function = script.names.tree(place).function(place)
        if function is None or script.graph.sites(function) or script.graph.references(function):
            continue
        if _is_for_all(script, function):
            return function
    return None


def _is_for_all(script: Script, function: Function) -> bool:
    """Whether ranks meet in a function, or train: by what it does itself, not under a test of the rank."""
    if any(script.training.runs_backward(statement) for statement in function.body):
        return True
    met = (one for statement in function.body for one in script.collectives.inside(statement))
    return any(script.guards.partial(one.via) is None for one in met)
