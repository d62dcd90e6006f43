"""Where an attribute is set: by the methods of its object's class, or by anybody, on objects without a class.

`self.model = …` belongs to a class; `args.rank = …` belongs to whoever reads `args.rank`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.calls.sites import Calls
from grader.checks.source.libraries.names import Names
from grader.checks.source.syntax.nodes import Definition
from grader.checks.source.syntax.tree import Tree


class Attributes:
    """Stores to attributes over all files."""

    def __init__(self, trees: tuple[Tree, ...], names: Names, calls: Calls) -> None:
        self._trees, self._names, self._calls = trees, names, calls

    def own_class(self, value: ast.expr) -> ast.ClassDef | None:
        """The class around a method in which `self` stands for its object."""
        if isinstance(value, ast.Name):
            tree = self._names.tree(value)
            function = tree.function(value)
            owner = tree.enclosing_class(function) if function is not None else None
            if owner is not None and value.id == "self":
                return owner
        return None

    def stores(
        self, attribute: str, owners: list[ast.ClassDef]
    ) -> Iterable[tuple[Tree, ast.AST, Definition]]:
        """Assignments to an attribute: of the given classes and their bases, or of any plain object."""
        family = [b for o in owners for b in (o, *self._calls.bases(o))]
        for tree in self._trees:
            for definition in tree.attributes.get(attribute, ()):
                scope = tree.scope(definition.node)
                owner = tree.enclosing_class(definition.node) if definition.name.startswith("self.") else None
                if owner in family if owners else owner is None:
                    yield tree, scope, definition
            for owner in tree.classes:
                if owner in family or not owners:
                    for definition in tree.definitions.get(owner, {}).get(attribute, ()):
                        if definition.kind == "assign":
                            yield tree, owner, definition
