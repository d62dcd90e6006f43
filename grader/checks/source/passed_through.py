"""Calls that give back what they are given: a module moved elsewhere, compiled, wrapped by a framework, entered."""

from __future__ import annotations

import ast

from grader.checks.source.framework_words import handed_on
from grader.checks.source.library_names import Names

# Methods that return the object itself (or the same module elsewhere): the value stays who it is.
_SAME_OBJECT = {
    "bfloat16", "cpu", "cuda", "double", "eval", "float", "half", "requires_grad_", "share_memory", "to", "train",
    "xpu",
}  # fmt: skip
# Of an exit stack: what `with` would give.
_ENTERING = {"enter_async_context", "enter_context"}
_SAME_ARGUMENT = {"torch.compile", "torch.nn.SyncBatchNorm.convert_sync_batchnorm", "torch.jit.script"}


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
