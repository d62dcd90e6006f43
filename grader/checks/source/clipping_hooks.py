"""Functions that clip and are handed to a parameter's hook: they see the gradient of their own rank, not the mean.

DDP and FSDP exchange gradients once they are made and all hooks of a tensor have run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.call_arguments import called_on, keyword_value
from grader.checks.source.script import Script
from grader.checks.source.syntax_nodes import name_of, names_in, walk
from grader.checks.source.training_loops import OTHER_WRAPPERS

_CLIPS = {
    "clamp",
    "clamp_",
    "clip",
    "clip_",
    "clamp_max",
    "clamp_max_",
    "clip_grad_norm_",
    "clip_grad_value_",
}
_NORMS = {"norm", "vector_norm"}
_PARAMETERS = ("parameters", "named_parameters")


def clipping_hooks(script: Script) -> Iterable[ast.Call]:
    """Calls that put a clip into a hook of parameters whose gradients are averaged afterwards."""
    averaged = script.training.wraps or script.calls(*OTHER_WRAPPERS) or script.averaging.all
    for call in script.called("register_hook") if averaged else ():
        hook = call.args[0] if call.args else keyword_value(call, "hook")
        body = _body(script, hook) if hook is not None else None
        if body is not None and _of_parameters(script, call) and _clips(script, body):
            yield call


def after_backward(script: Script, hook: ast.Call) -> str:
    """What to do instead, in the script's own words; "" where the text does not tell them."""
    for backward in script.training.backwards:
        for call in script.updates.forwards(backward):
            if isinstance(call.func, ast.Name | ast.Attribute) and _is_model(script, call.func):
                model = ast.unparse(call.func)
                return (
                    f"Leave {script.quote(hook)} out and clip the mean, which the step uses: after "
                    f"{script.quote(backward)} ({script.at(backward)}) write "
                    f"`torch.nn.utils.clip_grad_norm_({model}.parameters(), max_norm=1.0)`, with your limit."
                )
    return ""


def _is_model(script: Script, called: ast.expr) -> bool:
    origins = script.values.origins(called, returns=False)
    return any(o in script.training.wraps or script.replicas.builds_model(o) for o in origins)


def _body(script: Script, hook: ast.expr) -> ast.AST | None:
    for origin in (hook, *script.values.origins(hook)):
        if isinstance(origin, ast.Lambda):
            return origin
        if isinstance(origin, ast.Call) and name_of(origin) == "partial" and origin.args:
            return script.graph.definition(origin.args[0])
    found = script.graph.definition(hook)
    return found if isinstance(found, ast.FunctionDef) else None


def _of_parameters(script: Script, call: ast.Call) -> bool:
    """Whether the hook is put on each of a model's parameters, in a loop over them."""
    owner = called_on(call)
    tree = script.names.tree(call)
    above = tree.parent.get(call)
    while isinstance(owner, ast.Name) and above is not None:
        loops: list[ast.For | ast.comprehension] = [above] if isinstance(above, ast.For) else []
        if isinstance(above, ast.ListComp | ast.GeneratorExp):
            loops = list(above.generators)
        for loop in loops:
            bound = owner.id in names_in(loop.target)
            if bound and any(
                isinstance(n, ast.Call) and name_of(n) in _PARAMETERS for n in ast.walk(loop.iter)
            ):
                return True
        above = tree.parent.get(above)
    return False


def _clips(script: Script, body: ast.AST) -> bool:
    """Whether a function limits what it is given, and asks no other rank first."""
    calls = [n for n in walk(body) if isinstance(n, ast.Call)]
    if any((script.names.qualified(c.func) or "").startswith("torch.distributed.") for c in calls):
        return False
    named = {name_of(c) for c in calls}
    return bool(named & _CLIPS) or bool(named & _NORMS and named & {"min", "minimum", "max", "maximum"})
