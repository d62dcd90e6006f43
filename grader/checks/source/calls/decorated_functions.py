"""Which functions a decorator is given: `@summed` above `score` is `score = summed(score)`, and no call shows it.

Whoever follows what a decorator's wrapper makes of `function(*args)` finds here what `function` may be.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.calls.sites import Calls
from grader.checks.source.libraries.names import Names
from grader.checks.source.syntax.nodes import FUNCTIONS, Function


class DecoratedFunctions:
    """Decorators over all files."""

    def __init__(self, names: Names, calls: Calls) -> None:
        self._names, self._calls = names, calls
        self._given: dict[ast.arg, list[Function]] | None = None

    def given(self, parameter: ast.arg) -> list[Function]:
        """The functions that a parameter receives by being its decorator's first one."""
        if self._given is None:
            self._given = {}
            for function in self._calls.functions:
                for decorator in function.decorator_list:
                    for first in self.receiving(decorator):
                        self._given.setdefault(first, []).append(function)
        return self._given.get(parameter, [])

    def receiving(self, decorator: ast.expr) -> Iterable[ast.arg]:
        """The parameters that the function below a decorator goes into."""
        made = isinstance(decorator, ast.Call)
        found = self._calls.definition(decorator.func if isinstance(decorator, ast.Call) else decorator)
        if isinstance(found, ast.ClassDef):
            found, skipped = self._calls.method(found, "__call__" if made else "__init__"), 1
        else:
            skipped = 0
        receivers = [found]
        if made and isinstance(found, FUNCTIONS) and not skipped:
            # `@summed(op)` calls what `summed` returns.
            results = self._names.tree(found).returns.get(found, ())
            receivers = [self._calls.definition(r.value) for r in results if r.value is not None]
        for receiver in receivers:
            if isinstance(receiver, FUNCTIONS):
                spec = receiver.args
                yield from [*spec.posonlyargs, *spec.args][skipped : skipped + 1]
