"""Values for one process that stand in a name until the ranks of a distributed run put their own there.

`device = torch.device("cuda:0")`, then `if distributed: device = torch.device("cuda", local_rank)`: no rank ever reads
the first. What some line reads before, or what only some ranks replace, is no such value.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from grader.checks.source.ranks.rank_sets import RankSet
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import Definition, part_of


def replaced_on_ranks(script: Script, value: ast.expr) -> bool:
    """Whether every rank of a distributed run has something else in a value's place by the time it is read."""
    tree = script.names.tree(value)
    statement = tree.statement(value)
    held: ast.AST = value
    while isinstance(tree.parent.get(held), ast.IfExp):
        held = tree.parent[held]
    found = [
        d
        for definitions in tree.definitions.get(tree.scope(value), {}).values()
        for d in definitions
        if d.node is statement and d.kind == "assign" and part_of(d) is held
    ]
    return bool(found) and all(
        _replaced(script, d, read) for d in found for read in _reads(script, d) if d in read
    )


def _reads(script: Script, definition: Definition) -> Iterable[Sequence[Definition]]:
    """What may lie in a definition's place at each line that reads it, and at the end of its scope."""
    tree, name = script.names.tree(definition.node), definition.name
    scope, attribute = tree.scope(definition.node), name.rpartition(".")[2]
    places: list[ast.AST] = [
        *tree.loads.get(name, ()),
        *(n for n in tree.attribute_loads.get(attribute, ()) if ast.unparse(n) == name),
    ]
    meant = tree.definitions[scope][name]
    for place in places:
        if script.names.lookup(name, place) is meant:
            yield script.scopes.reaching(name, place)
    yield script.scopes.at_end(tree, scope, name)


def _replaced(script: Script, default: Definition, read: Sequence[Definition]) -> bool:
    """Whether a later value is put there by whoever is not alone; `read` has the nearest first."""
    own = {g.test for g in script.guards.around(default.node)}
    return any(
        any(
            g.condition.which is RankSet.DISTRIBUTED and g.test not in own
            for g in script.guards.around(d.node)
        )
        and script.guards.partial(d.node) is None
        for d in read[: read.index(default)]
    )
