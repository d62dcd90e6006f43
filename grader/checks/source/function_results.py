"""What a call of one of the submission's own functions gives back: what it returns or, of a context manager, yields."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from grader.checks.source.call_sites import Calls
from grader.checks.source.decided_branches import Branches
from grader.checks.source.decorators import is_context_manager
from grader.checks.source.library_names import Names
from grader.checks.source.reaching_assignments import Scopes
from grader.checks.source.syntax_nodes import FUNCTIONS


class Results:
    """Results of functions over all files."""

    def __init__(self, names: Names, scopes: Scopes, calls: Calls) -> None:
        self._names = names
        self._branches = Branches(names, scopes, calls)

    def of(self, call: ast.Call, function: ast.AST) -> Sequence[ast.expr]:
        """The expressions that a call may have its value from; none where it runs a constructor or a generator."""
        if not isinstance(function, FUNCTIONS) or function.name == "__init__":
            return ()
        return self._branches.taken(call, function, self.written(function))

    def written(self, function: ast.AST) -> list[ast.expr]:
        """The same of all calls together."""
        tree = self._names.tree(function)
        made: Sequence[ast.Return | ast.Yield | ast.YieldFrom] = tree.returns.get(function, ())
        if yields := tree.yields.get(function):
            # Who enters the block of a generator that is made a context manager gets what it yields.
            made = [y for y in yields if isinstance(function, FUNCTIONS) and is_context_manager(function)]
        return [m.value for m in made if m.value is not None]
