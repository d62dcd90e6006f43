"""Files that several ranks add to at the same time: which lines open them so, and what they add.

Taking turns (`if rank == turn:` in a loop over all ranks) and locks keep the ranks apart; who uses them is left alone.
"""

from __future__ import annotations

import ast

from grader.checks.source.calls.ways import ways_to
from grader.checks.source.files.file_writes import appends
from grader.checks.source.files.rank_paths import same_for_all
from grader.checks.source.ranks.rank_sets import RankSet
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import name_of, start, steps_up

_LOCKS = ("fcntl", "filelock", "portalocker", "msvcrt", "fasteners")
_TABLES = (".csv", ".tsv", ".json", ".jsonl", ".ndjson")
"""What is read again by somebody; lines in a log may stand in any order."""
_ADDING = ("writerow", "writerows", "write", "writelines")
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn)


def locks(script: Script) -> bool:
    """Whether anything may lock files."""
    return any(imported.partition(".")[0] in _LOCKS for tree in script.trees for imported in tree.imports)


def added_by_all(script: Script) -> list[ast.Call]:
    """Opens for adding to one path that two or more ranks reach at once, as far as the text shows it for certain."""
    if locks(script):
        return []
    found = [
        call
        for call, path in appends(script)
        if _is_table(script, path) and same_for_all(script, path) and _several(script, call, sure=True)
    ]
    return sorted(found, key=lambda c: (script.location(c).path, start(c)))


def in_turn(script: Script, call: ast.Call) -> bool:
    """Whether ranks that add to one file are kept apart: by a lock, or by a test that one rank passes at a time."""
    return locks(script) or not _several(script, call, sure=False)


def added(script: Script, call: ast.Call) -> str:
    """What is written into the file that a call opens, where it is a plain name; else `row`."""
    tree = script.names.tree(call)
    block = tree.parent.get(tree.parent.get(call, call))
    for inner in tree.calls_within(block) if isinstance(block, ast.With) else ():
        if name_of(inner) in _ADDING and len(inner.args) == 1 and isinstance(inner.args[0], ast.Name):
            return inner.args[0].id
    return "row"


def together(script: Script, call: ast.Call) -> str:
    """Advice for a row that every rank adds: collected first, and written by one."""
    row = added(script, call)
    return (
        f"Bring the rows together and write them once: `rows = [None] * dist.get_world_size()`, "
        f"`dist.all_gather_object(rows, {row})` on all ranks, with None from those that have none, and then open the "
        "file under `if dist.get_rank() == 0:`."
    )


def _is_table(script: Script, path: ast.expr) -> bool:
    parts = (n.value for n in script.values.closure(path) if isinstance(n, ast.Constant))
    return any(isinstance(p, str) and p.endswith(_TABLES) for p in parts)


def _several(script: Script, node: ast.AST, *, sure: bool) -> bool:
    """Whether some path of known calls leads two ranks to a node at once.

    With `sure` a test of values stops it, too: what is there on one rank alone (`if rows:`) may be meant.
    """

    def passes(place: ast.AST) -> bool:
        guards = script.guards.around(place)
        kept = (
            g.condition.which is RankSet.ALONE or (g.condition.partial and not _of_many(g.test))
            for g in guards
        )
        return not any(kept) and not (sure and _depends(script, place))

    def begins(place: ast.AST) -> bool:
        function = script.names.tree(place).function(place)
        if function is None:
            return not script.graph.spawn_sites
        return any(s.spawned for s in script.graph.sites(function))

    ways = ways_to(script.names, script.graph, node, goes_on=passes)
    return any(passes(place) and begins(place) for place in ways)


def _of_many(test: ast.AST) -> bool:
    """`rank < size`, `rank in members`: more than one rank passes such a test."""
    if isinstance(test, ast.UnaryOp):
        return _of_many(test.operand)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], _ORDERS):
        return False
    sides = (test.left, *test.comparators)
    return not any(isinstance(side, ast.Constant | ast.List | ast.Tuple | ast.Set) for side in sides)


def _depends(script: Script, node: ast.AST) -> bool:
    """Whether a node stands under a test of what a variable holds: its truth, or whether it is None."""
    tree = script.names.tree(node)
    for child, above in steps_up(tree.parent, node, tree.function(node)):
        if isinstance(above, ast.If) and child is not above.test:
            parts = above.test.values if isinstance(above.test, ast.BoolOp) else [above.test]
            for part in parts:
                plain = part.operand if isinstance(part, ast.UnaryOp) else part
                none = isinstance(plain, ast.Compare) and any(
                    isinstance(n, ast.Constant) and n.value is None for n in plain.comparators
                )
                if none or isinstance(plain, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
                    return True
    return False
