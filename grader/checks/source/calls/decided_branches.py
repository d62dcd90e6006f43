"""Which way through a function a call takes, as far as the constants that it is given decide.

`loader_for(data, train=False)` never comes by what stands under `if train:`. Only tests of parameters and literals are
decided, and what a name holds where the function returns it; everything else may go either way.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from grader.checks.source.calls.sites import Calls, CallSite
from grader.checks.source.libraries.names import Names
from grader.checks.source.syntax.nodes import (
    UNKNOWN,
    WITHS,
    Function,
    default_of,
    earlier_in_block,
    literal,
    start,
    walk,
)
from grader.checks.source.values.reaching_assignments import Scopes, leaves

_BRANCHING = (ast.If, ast.IfExp)
_ORDERING = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


class Branches:
    """Calls of functions over all files."""

    def __init__(self, names: Names, scopes: Scopes, calls: Calls) -> None:
        self._names, self._scopes, self._calls = names, scopes, calls
        self._asking: dict[Function, bool] = {}

    def taken(self, call: ast.Call, function: Function, results: Sequence[ast.expr]) -> Sequence[ast.expr]:
        """Those of a function's results that this call may come to, each as it is then."""
        sites = self._calls.sites(function) if self._asks(function) else ()
        site = next((s for s in sites if s.call is call and not s.spawned), None)
        if site is None:
            return results
        way = _Way(self._names, self._scopes, self._calls, function, site)
        return [chosen for result in results if not way.misses(result) for chosen in way.chosen(result)]

    def _asks(self, function: Function) -> bool:
        """Whether a function asks for one of its parameters anywhere, so that what a call gives can decide."""
        if function not in self._asking:
            parameters = {n.arg for n in walk(function.args) if isinstance(n, ast.arg)}
            tests = (n.test for n in walk(function) if isinstance(n, _BRANCHING)) if parameters else ()
            self._asking[function] = any(
                isinstance(n, ast.Name) and n.id in parameters for test in tests for n in walk(test)
            )
        return self._asking[function]


class _Way:
    """One call's way through one function."""

    def __init__(
        self, names: Names, scopes: Scopes, calls: Calls, function: Function, site: CallSite
    ) -> None:
        self._names, self._scopes, self._calls = names, scopes, calls
        self._tree = names.tree(function)
        self._function, self._site = function, site

    def misses(self, node: ast.AST) -> bool:
        """Whether the call never comes by a node: it takes another branch, or leaves the function before."""
        for child, above in self._upwards(node):
            if isinstance(above, _BRANCHING) and child is not above.test:
                taken = child is above.body or (isinstance(above, ast.If) and child in above.body)
                if self._truth(above.test) is (not taken):
                    return True
            if any(self._leaves(earlier) for earlier in earlier_in_block(self._tree.parent, child)):
                return True
        return False

    def chosen(self, value: ast.expr) -> Iterable[ast.expr]:
        """What a result is on this way: one branch of an expression, what a branch has put into a name."""
        holds = self._truth(value.test) if isinstance(value, ast.IfExp) else None
        if isinstance(value, ast.IfExp) and holds is not None:
            yield from self.chosen(value.body if holds else value.orelse)
        elif isinstance(value, ast.Name):
            yield from self._held(value)
        else:
            yield value

    def _held(self, name: ast.Name) -> list[ast.expr]:
        """The values that may have come into a name; the name itself where they are not plain to see."""
        held: list[ast.expr] = []
        for definition in self._scopes.reaching(name.id, name):  # nearest first
            plain = definition.kind == "assign" and not definition.path and definition.since <= start(name)
            own = self._tree.scope(definition.node) is self._function
            if not plain or not own or definition.value is None:
                return [name]
            if not self.misses(definition.node):
                held.append(definition.value)
                if self._settled(definition.node):
                    break
        return held or [name]

    def _settled(self, node: ast.AST) -> bool:
        """Whether what decides about a statement is known, so that nothing older is left where it has run."""
        return all(
            isinstance(above, WITHS)
            or above is self._function
            or (isinstance(above, ast.If) and self._truth(above.test) is not None)
            for _, above in self._upwards(node)
        )

    def _upwards(self, node: ast.AST) -> Iterable[tuple[ast.AST, ast.AST]]:
        while node is not self._function:
            above = self._tree.parent[node]
            yield node, above
            node = above

    def _leaves(self, statement: ast.AST) -> bool:
        if isinstance(statement, WITHS):
            return any(self._leaves(inner) for inner in statement.body)
        holds = self._truth(statement.test) if isinstance(statement, ast.If) else None
        if not isinstance(statement, ast.If) or holds is None:
            return False
        return leaves(self._names, statement.body if holds else statement.orelse)

    def _truth(self, test: ast.expr) -> bool | None:
        """Whether a test holds for this call, None where that takes more than its constants."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self._truth(test.operand)
            return None if inner is None else not inner
        if isinstance(test, ast.BoolOp):
            parts = [self._truth(value) for value in test.values]
            decisive = isinstance(test.op, ast.Or)
            return decisive if decisive in parts else None if None in parts else not decisive
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            return self._compared(test.left, test.ops[0], test.comparators[0])
        value = self._value(test)
        return None if value is UNKNOWN else bool(value)

    def _compared(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> bool | None:
        among = [right]
        if isinstance(op, ast.In | ast.NotIn):
            among = right.elts if isinstance(right, ast.Tuple | ast.List | ast.Set) else []
        value, known = self._value(left), [self._value(e) for e in among]
        if value is UNKNOWN or UNKNOWN in known or not known or isinstance(op, _ORDERING):
            return None
        return (value in known) is isinstance(op, ast.Eq | ast.Is | ast.In)

    def _value(self, node: ast.expr) -> object:
        """The constant that an expression is for this call."""
        if not isinstance(node, ast.Name):
            return literal(node)
        found = self._scopes.reaching(node.id, node)
        parameter = found[0].node if len(found) == 1 else None
        if not isinstance(parameter, ast.arg) or parameter not in walk(self._function.args):
            return UNKNOWN
        given = self._calls.bound(self._site, self._function, parameter.arg)
        if given is None:
            given = default_of(self._function, parameter)
        return UNKNOWN if given is None else self._written(given)

    def _written(self, given: ast.expr) -> object:
        """What an argument writes out, also by a name that stands for it."""
        found = self._scopes.reaching(given.id, given) if isinstance(given, ast.Name) else ()
        only = found[0] if len(found) == 1 and given is not UNKNOWN else None
        plain = only is not None and only.kind == "assign" and not only.path
        return literal(only.value if plain and only and only.value else given)
