"""Places that write to weights beside the optimizer: in place, drawn anew, loaded."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import name_of

_WHOLE = ("load_state_dict", "reset_parameters", "apply")
_IN_PLACE = {
    "clamp_",
    "copy_",
    "mul_",
    "add_",
    "div_",
    "sub_",
    "fill_",
    "zero_",
    "normal_",
    "uniform_",
    "lerp_",
    "clip_",
}
_DRAWING = re.compile(r"^rand|(normal|uniform|bernoulli|exponential|cauchy)_?$|^reset_parameters$")

BEFORE_THE_WRAP = (
    "Load or change parameters before the wrap (DDP sends rank 0's to all), or on every rank alike; "
    "give all ranks the same learning rate."
)
"""What to write where one rank changes weights for itself."""


def weight_changes(script: Script) -> Iterable[tuple[ast.AST, ast.expr]]:
    """Places that may write to weights, with what they write to."""
    changed = {call: call.args[0] for _, call in script.calls_under("torch.nn.init.") if call.args}
    for call in script.called(*_WHOLE, *_IN_PLACE):
        func = call.func
        if isinstance(func, ast.Attribute) and (func.attr in _WHOLE or not _in_gradient(func.value)):
            changed.setdefault(call, func.value)
    for call in script.all_calls() if changed else ():
        if call in changed:
            yield call, changed[call]
    for tree in script.trees:
        for definition in tree.attributes.get("data", ()):
            targets = getattr(definition.node, "targets", None) or [getattr(definition.node, "target", None)]
            for target in targets:
                if isinstance(target, ast.Attribute):
                    yield definition.node, target.value


def changed_apart(script: Script) -> Iterable[ast.AST]:
    """Changes that leave each rank with weights of its own, and the test that keeps them from the others.

    Made under a test of the rank, or with numbers that each rank draws for itself after the wrap; training follows.
    """
    for node, owner in weight_changes(script):
        if not script.replicas.trained_after(node) or script.replicas.wrapped_again(node):
            continue
        guard = script.replicas.on_some_ranks(node)
        if guard is not None:
            if _of_module(script, owner):
                yield node
                yield guard.test
        elif _draws(script, node) and any(script.replicas.after(w, node) for w in script.training.wraps):
            yield node


def _of_module(script: Script, owner: ast.expr) -> bool:
    """Whether what is written to comes from a module's tensors: a counter of one's own is nobody's weight."""
    return any(
        isinstance(n, ast.Attribute)
        and n.attr in ("parameters", "named_parameters", "state_dict", "weight", "bias", "data", "module")
        for n in (*ast.walk(owner), *script.values.closure(owner))
    )


def _draws(script: Script, node: ast.AST) -> bool:
    calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
    drawn = any(_DRAWING.search(name_of(n)) for n in calls)
    return drawn or any((script.names.qualified(n.func) or "").startswith("torch.nn.init.") for n in calls)


def _in_gradient(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and "grad" in ast.dump(node)
