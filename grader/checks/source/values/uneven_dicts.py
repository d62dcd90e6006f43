"""Tables (`table["key"] = …`) into which only some ranks put an entry: a walk over one is longer on those ranks.

Follows a table by where its value comes from, not by its name; entries that are made after the walk don't count. What a
longer walk does to a run is for the rules to say.
"""

from __future__ import annotations

import ast

from grader.checks.source.ranks.rank_sets import RankSet
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import end, loop_above, start


class UnevenDicts:
    """Entries over all files of one script."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._entries: list[tuple[str, ast.AST]] | None = None

    def filled_by_some(self, loop: ast.For | ast.AsyncFor) -> ast.AST | None:
        """The statement that makes an entry on some ranks only, in the table that a loop goes through."""
        table = _table(loop.iter)
        if table is None:
            return None
        if self._entries is None:
            self._entries = self._partial_entries()
        origins = set(self._script.values.origins(table))
        for base, node in self._entries:
            if self._comes_later(node, loop):
                continue
            target = next((n for n in ast.walk(node) if isinstance(n, ast.Name) and n.id == base), None)
            if target is not None and origins & set(self._script.values.origins(target)):
                return node
        return None

    def _partial_entries(self) -> list[tuple[str, ast.AST]]:
        """Statements that make an entry on some ranks only, with the table's name."""
        entries: list[tuple[str, ast.AST]] = []
        for tree in self._script.trees:
            for names in tree.definitions.values():
                for name, found in names.items():
                    base, bracket, _ = name.partition("[")
                    for definition in found if bracket else ():
                        guard = self._script.guards.partial(definition.node)
                        if (
                            guard is not None
                            and guard.condition.sure
                            and guard.condition.which is not RankSet.ALL
                        ):
                            entries.append((base, definition.node))
        return entries

    def _comes_later(self, node: ast.AST, loop: ast.For | ast.AsyncFor) -> bool:
        """Whether an entry is made after the loop, in the same body, with no loop around both."""
        names = self._script.names
        tree = names.tree(loop)
        if (
            names.tree(node) is not tree
            or tree.scope(node) is not tree.scope(loop)
            or start(node) < end(loop)
        ):
            return False
        above = loop_above(tree.parent, loop)
        return above is None or not tree.inside(node, above)


def _table(node: ast.expr) -> ast.Name | None:
    while True:
        if isinstance(node, ast.Name):
            return node
        if isinstance(node, ast.Attribute):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.args[0] if node.args else node.func
        else:
            return None
