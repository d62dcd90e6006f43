"""Values between which a test of the rank has chosen: `role = "main" if rank == 0 else "worker"`, a writer or None.

Asking for such a value later (`if role == "main":`, `if writer:`) is the same test once more. What comes out of a list
is not followed: a broadcast may have filled it.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from grader.checks.source.calls.sites import Calls
from grader.checks.source.libraries.names import Names
from grader.checks.source.ranks.rank_sets import NOTHING, Condition, all_of, common
from grader.checks.source.syntax.nodes import DISPLAYS, FUNCTIONS, UNKNOWN, children, literal, name_of
from grader.checks.source.values.collected_values import collected_into
from grader.checks.source.values.reaching_assignments import Scopes
from grader.checks.source.values.sources import Values

_MAX_DEPTH = 6
_MAX_NESTED = 6
"""So many choices may hang on each other: what was chosen by a test of what was chosen."""
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], object]] = {
    ast.Eq: operator.eq, ast.Is: operator.eq, ast.NotEq: operator.ne, ast.IsNot: operator.ne,
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ChosenValue:
    """One of several values, and the ranks that may have it."""

    value: ast.AST
    condition: Condition


class ChosenValues:
    """Such values over all files; `test` says what a condition tells of ranks."""

    def __init__(
        self,
        names: Names,
        scopes: Scopes,
        calls: Calls,
        values: Values,
        test: Callable[[ast.AST], Condition],
    ) -> None:
        self._names, self._scopes, self._calls, self._values, self._test = names, scopes, calls, values, test
        self._known: dict[ast.AST, tuple[ChosenValue, ...]] = {}
        self._nested = 0

    def true(self, node: ast.expr) -> Condition:
        """Which ranks have something in a value, where the others have `None`, `0` or nothing else that counts."""
        return self._where(node, self._truth)

    def made_by(self, node: ast.expr, classes: Iterable[ast.expr]) -> Condition:
        """Which ranks have an object of one of these classes in a value, where the others have one of another."""
        wanted = {self._calls.definition(c) for c in classes}

        def outcome(value: ast.AST) -> bool | None:
            owner = self._calls.built_class(value)
            if owner is None:
                return False if self._is_none(value) else None
            return not wanted.isdisjoint(self._calls.family(owner))

        return self._where(node, outcome)

    def given(self, node: ast.expr) -> Condition:
        """Which ranks have anything but `None` in a value."""
        return self._where(node, lambda value: False if self._is_none(value) else None)

    def compared(self, node: ast.expr, op: ast.cmpop, others: Iterable[ast.expr]) -> Condition:
        """For which ranks a comparison with written values holds; with several of them, for any."""
        constants = [self._constant(other) for other in others]
        if UNKNOWN in constants or not constants:
            return NOTHING
        negative = isinstance(op, ast.NotIn)
        holds: Callable[[Any, Any], object] = _COMPARED.get(type(op), operator.eq)

        def outcome(value: ast.AST) -> bool | None:
            own = self._constant(value)
            try:
                found = own is not UNKNOWN and any(holds(own, other) for other in constants)
            except TypeError:
                return None
            return None if own is UNKNOWN else found is not negative

        return self._where(node, outcome)

    def _where(self, node: ast.expr, outcome: Callable[[ast.AST], bool | None]) -> Condition:
        """For which ranks something holds that is surely false (`False`) for some of the values."""
        if self._nested >= _MAX_NESTED:
            return NOTHING
        self._nested += 1
        choices = self.choices(node)
        self._nested -= 1
        failing = [c.condition for c in choices if outcome(c.value) is False]
        rest = [c.condition for c in choices if outcome(c.value) is not False]
        if not failing or not rest:
            return NOTHING
        if (held := common(rest)).partial:
            return held
        return common(failing).negated()

    def _constant(self, node: ast.AST) -> object:
        """What an expression writes out; of an enumeration's member its place, which no other member has."""
        origins = self._values.origins(node)
        if len(origins) != 1 or origins[0] is UNKNOWN:
            return UNKNOWN
        owner = self._names.tree(origins[0]).scope(origins[0])
        if isinstance(owner, ast.ClassDef) and any(name_of(base).endswith("Enum") for base in owner.bases):
            return origins[0]
        return literal(origins[0])

    def choices(self, node: ast.AST, depth: int = 0) -> tuple[ChosenValue, ...]:
        """All that a value may be, each with the ranks that may have it."""
        if node not in self._known:
            if depth > _MAX_DEPTH:
                return (ChosenValue(node, NOTHING),)
            self._known[node] = ()  # what a cycle adds to itself is nothing new
            self._known[node] = tuple(dict.fromkeys(self._split(node, depth + 1)))
        return self._known[node]

    def _split(self, node: ast.AST, depth: int) -> Iterable[ChosenValue]:
        if isinstance(node, ast.IfExp):
            condition = self._test(node.test)
            parts: list[tuple[Condition, ast.AST]] = [
                (condition, node.body),
                (condition.negated(), node.orelse),
            ]
        else:
            origins = self._assigned(node) or self._values.choices(node)
            parts = [(self.around(origin), origin) for origin in origins if origin is not node]
        if not parts:
            yield ChosenValue(node, NOTHING)
        for condition, part in parts:
            for choice in self.choices(part, depth):
                yield ChosenValue(choice.value, all_of([condition, choice.condition]))

    def _assigned(self, node: ast.AST) -> list[ast.expr]:
        """What plain assignments and `with` have put into a name; nothing where it may also come from elsewhere."""
        found = self._scopes.reaching(node.id, node) if isinstance(node, ast.Name) else ()
        values = [
            d.value for d in found if d.kind in ("assign", "with") and not d.path and d.value is not None
        ]
        return values if len(values) == len(found) else []

    def around(self, node: ast.AST) -> Condition:
        """Which ranks come to a place, by the tests of its own function."""
        tree = self._names.tree(node)
        child, above = node, tree.parent.get(node)
        while above is not None and not isinstance(child, FUNCTIONS):
            if isinstance(above, ast.If) and child is not above.test:
                condition = self._test(above.test)
                if condition.partial:
                    return condition if child in above.body else condition.negated()
            child, above = above, tree.parent.get(above)
        return NOTHING

    def _is_none(self, value: ast.AST) -> bool:
        """`None`, and what `with nullcontext() as file` hands over."""
        if isinstance(value, ast.Call) and not value.args and not value.keywords:
            return self._names.qualified(value.func) == "contextlib.nullcontext"
        return literal(value) is None

    def _truth(self, value: ast.AST) -> bool | None:
        """Whether a value counts as true; of a list that something is added to later, nobody knows."""
        if self._is_none(value):
            return False
        if not isinstance(value, (*DISPLAYS, ast.Dict, ast.Set)):
            written = literal(value)
            return None if written is UNKNOWN else bool(written)
        tree = self._names.tree(value)
        targets = [t for t in getattr(tree.statement(value), "targets", ()) if isinstance(t, ast.Name)]
        grows = any(True for target in targets for _ in collected_into(tree, target))
        return None if grows else bool(children(value))
