"""What a call gives back: what a function of the submission returns or yields, or what the call was given."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from grader.checks.source.calls.decided_branches import Branches
from grader.checks.source.calls.decorators import is_context_manager
from grader.checks.source.calls.sites import Calls
from grader.checks.source.libraries.framework_words import handed_on
from grader.checks.source.libraries.names import Names
from grader.checks.source.syntax.nodes import FUNCTIONS
from grader.checks.source.values.reaching_assignments import Scopes

# Methods that return the object itself (or the same module elsewhere): the value stays who it is.
_SAME_OBJECT = {
    "bfloat16", "cpu", "cuda", "double", "eval", "float", "half", "requires_grad_", "share_memory", "to", "train",
    "xpu",
}  # fmt: skip
# Of an exit stack: what `with` would give.
_ENTERING = {"enter_async_context", "enter_context"}
_SAME_ARGUMENT = {"torch.compile", "torch.nn.SyncBatchNorm.convert_sync_batchnorm", "torch.jit.script"}


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


def passed_through(names: Names, call: ast.Call) -> ast.expr | None:
    """What a call gives back as it is; None for all others."""
    func, name = call.func, names.qualified(call.func)
    if isinstance(func, ast.Attribute) and func.attr in _ENTERING and len(call.args) == 1:
        return call.args[0]
    if isinstance(func, ast.Attribute) and func.attr in _SAME_OBJECT and name is None:
        return func.value
    if (name in _SAME_ARGUMENT and call.args) or len(handed_on(names, call)) == 1:
        return call.args[0]
    return None
