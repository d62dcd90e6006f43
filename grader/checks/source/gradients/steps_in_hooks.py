"""Optimizers that step in a hook on a gradient: within the backward pass, before anything has averaged it."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.causes import CauseInText
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import FUNCTIONS, start

_REGISTERING = (
    "register_post_accumulate_grad_hook",
    "register_hook",
    "register_multi_grad_hook",
    "register_full_backward_hook",
)


def step_in_hook(script: Script) -> CauseInText | None:
    """The first one; None where no hook of the text leads to a step."""
    for call, step in _stepping_hooks(script):
        backward = min(script.training.backwards, key=start, default=None)
        below = (
            f"behind {script.quote(backward)} at {script.at(backward)}" if backward else "behind `backward`"
        )
        around = (
            "before DDP exchanges it: each rank steps with its own"
            if script.training.wraps
            else "which is that of this rank alone"
        )
        return CauseInText(
            (call, step),
            f"{script.at(step)} steps within the backward pass. {script.at(call)} has put it into a hook, which runs "
            f"as soon as a gradient is there, {around}.",
            f"Step {below}, when the gradients of all ranks are averaged, and leave out the hook of {script.at(call)}."
            + (
                ""
                if script.training.wraps
                else " The model has to be wrapped, too: `DistributedDataParallel(model)`."
            ),
        )
    return None


def _stepping_hooks(script: Script) -> Iterable[tuple[ast.Call, ast.AST]]:
    """Registrations with the step that the hook takes, or the call in it that leads to one."""
    for call in script.called(*_REGISTERING):
        given = [*call.args, *(k.value for k in call.keywords)]
        for hook in (h for one in given for h in _functions(script, one)):
            for step in script.updates.entries(hook, script.updates.steps):
                yield call, step
                break


def _functions(script: Script, given: ast.expr) -> Iterable[ast.AST]:
    """The functions of the script that an argument stands for: by name, as a method, or made by another one."""
    found = [given, script.graph.definition(given), *script.values.origins(given)]
    if isinstance(given, ast.Attribute):
        methods = script.graph.methods(given.attr)
        found += methods if len(methods) == 1 else []
    yield from dict.fromkeys(f for f in found if isinstance(f, (ast.Lambda, *FUNCTIONS)))
