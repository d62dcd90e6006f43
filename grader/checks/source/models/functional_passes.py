"""`functional_call` of the module inside a wrapper: a forward pass that the wrapper knows nothing of."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.script import Script

_CALLS = ("torch.func.functional_call", "torch.nn.utils.stateless.functional_call")
_PARTIAL = "functools.partial"

THROUGH_THE_WRAPPER = (
    "DDP averages only what goes through it: keep the wrapper and call it in training, `model(inputs)`; it holds the "
    "same parameters. Or average by hand between `backward` and the step: `for p in model.parameters(): "
    "dist.all_reduce(p.grad); p.grad /= dist.get_world_size()`."
)


def functional_passes(script: Script) -> Iterable[ast.Call]:
    """Calls of `functional_call`, and partials of it, that are given what a wrapper holds."""
    found = [*script.calls(*_CALLS), *(c for c in script.calls(_PARTIAL) if _of_functional(script, c))]
    yield from (call for call in found if goes_around(script, call))


def goes_around(script: Script, call: ast.Call) -> bool:
    """Whether a call is one of these."""
    module = _module(script, call)
    if isinstance(module, ast.Attribute) and module.attr == "module":
        return script.training.wrapped(module.value)
    if not isinstance(module, ast.Name | ast.Attribute) or script.training.wrapped(module):
        return False
    inside = {o for wrap in script.training.wraps for o in script.replicas.inner(wrap)}
    origins = script.values.origins(module, returns=False)
    held = (o for o in origins if isinstance(o, ast.Attribute) and o.attr == "module")
    return bool(inside & set(origins)) or any(script.training.wrapped(o.value) for o in held)


def _module(script: Script, call: ast.Call) -> ast.expr | None:
    if script.names.qualified(call.func) in _CALLS:
        return next((k.value for k in call.keywords if k.arg == "module"), next(iter(call.args), None))
    return call.args[1] if _of_functional(script, call) and len(call.args) > 1 else None


def _of_functional(script: Script, call: ast.Call) -> bool:
    partial = script.names.qualified(call.func) == _PARTIAL
    return partial and bool(call.args) and script.names.qualified(call.args[0]) in _CALLS
