"""Which assignments of a name can reach a place that reads it.

A good approximation by position and branches: later assignments hide earlier ones, branches that exclude each other do
not mix, loops carry values round. It never evaluates a condition.
"""

from __future__ import annotations

import ast

from grader.checks.source.libraries.names import Names
from grader.checks.source.syntax.nodes import (
    LOOPS,
    SCOPES,
    WITHS,
    Definition,
    Place,
    ancestors,
    block_of,
    start,
    steps_up,
)
from grader.checks.source.syntax.tree import Tree

_END: Place = (10**9, 0)
_EXITS = {"sys.exit", "exit", "quit", "os._exit", "os.abort"}


def leaves(names: Names, block: list[ast.stmt]) -> bool:
    """Whether a block of statements never runs on into what follows it."""
    if not block:
        return False
    last = block[-1]
    if isinstance(last, ast.Return | ast.Raise | ast.Continue | ast.Break):
        return True
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        return names.qualified(last.value.func) in _EXITS
    if isinstance(last, ast.If):
        return leaves(names, last.body) and leaves(names, last.orelse)
    return isinstance(last, ast.With) and leaves(names, last.body)


def is_main_block(node: ast.AST) -> bool:
    """Whether a node is `if __name__ == "__main__":`."""
    if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare):
        return False
    return isinstance(node.test.left, ast.Name) and node.test.left.id == "__name__"


class Scopes:
    """Reaching definitions over all files."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._known: dict[tuple[str, ast.AST], tuple[Definition, ...]] = {}
        self._last: dict[tuple[str, ast.AST], tuple[Definition, ...]] = {}

    def reaching(self, name: str, node: ast.AST) -> tuple[Definition, ...]:
        """Definitions of `name` (`x`, `self.x`, `x['k']`) that may hold where `node` stands, nearest first."""
        key = (name, node)
        if key not in self._known:
            if not self._names.knows(node):
                return ()
            found = self._names.lookup(name, node)
            tree = self._names.tree(node)
            local = found is tree.definitions.get(tree.scope(node), {}).get(name)
            if len(found) > 1 or not local:
                self._known[key] = self._reach(tree, found, node if local else None)
            else:
                self._known[key] = tuple(found)
        return self._known[key]

    def at_end(self, tree: Tree, scope: ast.AST, name: str) -> tuple[Definition, ...]:
        """Definitions of a name that may hold when a scope's last statement has run."""
        key = (name, scope)
        if key not in self._last:
            self._last[key] = self._reach(tree, tree.definitions.get(scope, {}).get(name, []), None)
        return self._last[key]

    def _reach(self, tree: Tree, found: list[Definition], node: ast.AST | None) -> tuple[Definition, ...]:
        place = start(node) if node is not None else _END
        reached: list[Definition] = []
        branches: dict[ast.If, set[str]] = {}
        for definition in reversed(found):
            if definition.since > place or (node is not None and self._excluded(tree, definition.node, node)):
                continue
            if any(self._overwrites(tree, later, definition) for later in reached):
                continue
            reached.append(definition)
            if definition.kind != "augment" and self._hides_earlier(tree, definition.node, node, branches):
                break
        if node is not None:
            loops = _loops_around(tree, node)
            for definition in found:
                if definition.since > place and loops & _loops_around(tree, definition.node):
                    reached.append(definition)
        return tuple(reached)

    def _overwrites(self, tree: Tree, later: Definition, earlier: Definition) -> bool:
        """Whether who made the earlier assignment always comes by the later one: both stand in one block."""
        block = block_of(tree.parent, later.node) if later.kind == "assign" else []
        child: ast.AST | None = earlier.node if block else None
        while child is not None and not isinstance(child, SCOPES):
            inner = block_of(tree.parent, child)
            if inner is block:
                return True
            if leaves(self._names, inner):
                return False
            child = tree.parent.get(child)
        return False

    def _excluded(self, tree: Tree, definer: ast.AST, node: ast.AST) -> bool:
        """Whether the two stand in different branches of one `if`."""
        for child, above in steps_up(tree.parent, definer):
            if isinstance(above, ast.If) and tree.inside(node, above):
                return child in above.body and any(tree.inside(node, s) for s in above.orelse)
        return False

    def _hides_earlier(
        self, tree: Tree, definer: ast.AST, node: ast.AST | None, branches: dict[ast.If, set[str]]
    ) -> bool:
        if isinstance(definer, ast.arg | ast.comprehension | ast.NamedExpr):
            return isinstance(definer, ast.comprehension)
        for child, above in steps_up(tree.parent, definer):
            if isinstance(above, SCOPES) or (node is not None and tree.inside(node, above)):
                return True
            through = isinstance(above, WITHS) or is_main_block(above)
            if isinstance(above, ast.Try):
                through = child in above.body or child in above.finalbody
            if isinstance(above, ast.If) and not through:
                branch, other = ("body", above.orelse) if child in above.body else ("orelse", above.body)
                seen = branches.setdefault(above, set())
                seen.add(branch)
                through = len(seen) == 2 or leaves(self._names, other)
            if not through:
                return False
        return True


def _loops_around(tree: Tree, node: ast.AST) -> set[ast.AST]:
    return {above for above in ancestors(tree.parent, node, SCOPES) if isinstance(above, LOOPS)}
