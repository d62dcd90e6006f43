"""Variables into which a collective has put what all ranks hold since then: a broadcast box, a reduced tensor.

What a variable was given before says nothing of its value any more.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.calls.sites import Calls
from grader.checks.source.libraries.names import Names
from grader.checks.source.syntax.nodes import (
    FUNCTIONS,
    LOOPS,
    VARIABLES,
    Function,
    Place,
    ancestors,
    start,
    walk,
)
from grader.checks.source.values.reaching_assignments import Scopes

_FILLING = tuple(
    f"torch.distributed.{name}"
    for name in (
        "all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce", "broadcast",
        "broadcast_object_list",
    )
)  # fmt: skip
"""Collectives that leave the same on all ranks in their first argument."""


class Filled:
    """Such variables over all files."""

    def __init__(self, names: Names, scopes: Scopes, calls: Calls) -> None:
        self._names, self._scopes, self._calls = names, scopes, calls
        self._places: dict[tuple[ast.AST, str], list[ast.AST]] | None = None

    def has(self, node: ast.AST) -> bool:
        """Whether a variable, or an element of it, was filled between its last assignment and a place that reads it."""
        whole = node.value if isinstance(node, ast.Subscript) else node
        if not isinstance(whole, VARIABLES) or not self._all():
            return False
        name = ast.unparse(whole)
        calls = self._all().get((self._names.tree(node).scope(node), name), ())
        given = [d.node for text in {name, ast.unparse(node)} for d in self._scopes.reaching(text, node)]
        since = max((self._holds_from(d, node) for d in given), default=(0, 0))
        return any(since <= start(call) < start(node) for call in calls)

    def _holds_from(self, given: ast.AST, node: ast.AST) -> Place:
        """Where the way from an assignment to a place begins: for one of the round before, at the top of the loop."""
        tree = self._names.tree(node)
        around = (a for a in ancestors(tree.parent, node) if isinstance(a, LOOPS) and tree.inside(given, a))
        loop = next(around, None) if start(given) > start(node) else None
        return start(loop or given)

    def gives_back(self, call: ast.Call) -> bool:
        """Whether a function of the submission gives back what a collective has filled in it."""
        given = [
            r.value
            for target in self._calls.targets(call)
            for r in self._names.tree(target).returns.get(target, ())
            if r.value is not None
        ]
        return bool(given) and all(any(self.has(n) for n in walk(value)) for value in given)

    def _all(self) -> dict[tuple[ast.AST, str], list[ast.AST]]:
        """The calls that fill a variable, themselves or in a function that they hand it to."""
        if self._places is None:
            self._places = {}
            for call in self._calls.named(*_FILLING):
                for where, filled in self._written(call, call.args[:1], frozenset()):
                    scope = self._names.tree(where).scope(where)
                    self._places.setdefault((scope, ast.unparse(filled)), []).append(where)
        return self._places

    def _written(
        self, call: ast.AST, given: Iterable[ast.expr], seen: frozenset[Function]
    ) -> Iterable[tuple[ast.AST, ast.expr]]:
        for filled in given:
            if isinstance(filled, VARIABLES):
                yield call, filled
            function = self._names.tree(call).function(call)
            if not isinstance(filled, ast.Name) or not isinstance(function, FUNCTIONS) or function in seen:
                continue
            for site in self._calls.sites(function):
                bound = self._calls.bound(site, function, filled.id)
                if isinstance(bound, ast.expr) and not site.spawned:
                    yield from self._written(site.call, [bound], seen | {function})
