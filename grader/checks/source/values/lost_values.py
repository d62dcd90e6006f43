"""Values that are computed and that nothing reads: `grad = grad / n` at the end of a helper binds its own name alone.

Told only where every reading of that name is seen; a name that other functions may read counts as read.
"""

from __future__ import annotations

import ast

from grader.checks.source.calls.sites import Calls
from grader.checks.source.libraries.names import Names
from grader.checks.source.syntax.arithmetic import NEW_SCALED
from grader.checks.source.syntax.nodes import FUNCTIONS, end, name_of, start
from grader.checks.source.syntax.tree import Tree
from grader.checks.source.values.reaching_assignments import Scopes


class LostValues:
    """Values that nothing reads, over all files."""

    def __init__(self, names: Names, scopes: Scopes, calls: Calls) -> None:
        self._names, self._scopes, self._calls = names, scopes, calls

    def has(self, node: ast.AST) -> bool:
        """Whether an expression makes a new value that is thrown away, or bound to a local name that nobody reads."""
        if isinstance(node, ast.Call) and (
            name_of(node) not in NEW_SCALED or any(k.arg == "out" for k in node.keywords)
        ):
            return False
        tree = self._names.tree(node)
        above = tree.parent.get(node)
        if isinstance(above, ast.Expr):
            return True
        if not isinstance(above, ast.Assign) or len(above.targets) != 1:
            return False
        [target] = above.targets
        return isinstance(target, ast.Name) and not self._read(tree, above, target.id)

    def _read(self, tree: Tree, bound: ast.Assign, name: str) -> bool:
        if tree.function(bound) is None and len(self._names.trees) > 1:
            return True  # other files may import it
        return any(
            self._reads(tree, bound, load) and not self._returned_in_vain(tree, load)
            for load in tree.loads.get(name, ())
        )

    def _reads(self, tree: Tree, bound: ast.Assign, load: ast.Name) -> bool:
        """Whether what is bound here may be what is read there."""
        found = self._names.lookup(load.id, load)
        if all(d.node is not bound for d in found):
            return False
        if tree.scope(load) is not tree.scope(bound):
            return True
        if start(load) > end(bound):
            return any(d.node is bound for d in self._scopes.reaching(load.id, load))
        # In a later round, unless that round has bound the name anew by then.
        around = [n for n in tree.loops if tree.inside(bound, n) and tree.inside(load, n)]
        loop = max(around, key=start, default=None)
        return loop is not None and not any(
            d.node is loop or (d.kind == "assign" and d.node in loop.body and end(d.node) <= start(load))
            for d in found
        )

    def _returned_in_vain(self, tree: Tree, load: ast.Name) -> bool:
        """Whether a name is read to be returned to callers none of which takes what it gets."""
        function = tree.function(load)
        if not isinstance(tree.parent.get(load), ast.Return) or not isinstance(function, FUNCTIONS):
            return False
        sites = self._calls.sites(function)
        if not sites or self._calls.references(function) or any(s.spawned for s in sites):
            return False
        return all(isinstance(self._names.tree(s.call).parent.get(s.call), ast.Expr) for s in sites)
