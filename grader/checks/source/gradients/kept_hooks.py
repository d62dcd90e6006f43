"""Hooks that are registered again in each round and never removed, so that each round counts once more.

Asked only where what was counted has been seen to pile up; it says where and what to write, and decides nothing.
"""

from __future__ import annotations

import ast

from grader.checks.source.metrics.recorded_losses import Cause
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import ancestors, name_of

_MODEL = "The hooks of the rounds before are still there, and each of them counts as well."


def kept_hooks(script: Script) -> Cause | None:
    """A `register_…_hook` that runs more than once and whose handle nobody removes."""
    for call in script.called_like(lambda name: name.startswith("register_") and name.endswith("_hook")):
        if script.training.repeated(call) and not _removed(script, call):
            return Cause(
                (call,),
                f"{_MODEL} Keep what {script.quote(call)} gives, `hooks = []` and `hooks.append(…)`, and end each "
                "round with `for hook in hooks: hook.remove()`; or register once, before the first round.",
            )
    return None


def _removed(script: Script, call: ast.Call) -> bool:
    """Whether anything that the script removes may be this hook: its handle is kept, and some handle is removed."""
    tree = script.names.tree(call)
    thrown = isinstance(tree.parent.get(call), ast.Expr)
    managed = any(isinstance(n, ast.withitem) for n in ancestors(tree.parent, call))
    return managed or (not thrown and any(name_of(c) == "remove" for c in script.called("remove")))
