"""Roles that are given to some ranks: `roles.add("writer")` or `role |= Role.WRITER` under a test of the rank.

Asking later whether a process has such a role (`Role.WRITER in role`) is the same test once more.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.libraries.names import Names
from grader.checks.source.ranks.rank_sets import NOTHING, Condition, all_of, common
from grader.checks.source.syntax.nodes import DISPLAYS, UNKNOWN, literal
from grader.checks.source.values.chosen_values import ChosenValues
from grader.checks.source.values.collected_values import collected_into
from grader.checks.source.values.reaching_assignments import Scopes
from grader.checks.source.values.sources import Values


class GivenRoles:
    """Such roles over all files."""

    def __init__(self, names: Names, scopes: Scopes, values: Values, chosen: ChosenValues) -> None:
        self._names, self._scopes, self._values, self._chosen = names, scopes, values, chosen

    def having(self, role: ast.expr, owner: ast.expr) -> Condition:
        """The ranks that have a role, where the text shows everything that they can be given."""
        given: list[tuple[object, Condition]] = []
        for place, value in self._given(owner):
            for choice in self._chosen.choices(value):
                ranks = all_of([self._chosen.around(place), choice.condition])
                given += [(self._identity(part), ranks) for part in self._parts(choice.value)]
        if any(identity is None for identity, _ in given):
            return NOTHING
        asked = {self._identity(origin) for origin in self._values.origins(role)}
        found = [[ranks for identity, ranks in given if identity == one] or [NOTHING] for one in asked]
        return common([ranks for one in found for ranks in one])

    def _given(self, owner: ast.expr) -> Iterable[tuple[ast.AST, ast.expr]]:
        """All that a variable is set to, and all that is added to it, with the place where that is done."""
        if isinstance(owner, ast.Attribute):
            definitions = [d for t in self._names.trees for d in t.attributes.get(owner.attr, ())]
        elif isinstance(owner, ast.Name):
            definitions = list(self._scopes.reaching(owner.id, owner))
            for added in collected_into(self._names.tree(owner), owner):
                yield from ((value, value) for value in added)
        else:
            definitions = []
        for definition in definitions:
            yield definition.node, definition.value or UNKNOWN

    def _parts(self, value: ast.AST) -> Iterable[ast.AST]:
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.BitOr | ast.Add):
            yield from (*self._parts(value.left), *self._parts(value.right))
        elif isinstance(value, (*DISPLAYS, ast.Set)):
            yield from (part for element in value.elts for part in self._parts(element))
        elif not (
            isinstance(value, ast.Call) and self._names.qualified(value.func) == "set" and not value.args
        ):
            yield from self._values.origins(value)

    def _identity(self, origin: ast.AST) -> object:
        """What tells one role from another: a member of an enumeration is where it is written, a text what it says."""
        tree = self._names.tree(origin) if origin is not UNKNOWN else None
        if tree is not None and isinstance(tree.scope(origin), ast.ClassDef):
            return origin
        written = literal(origin)
        return None if written is UNKNOWN else (type(written), written)
