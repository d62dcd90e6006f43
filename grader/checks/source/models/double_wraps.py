"""Models that are wrapped in DDP, and then once more."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.causes import stands_at
from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax.nodes import start
from grader.model.call_site import Site

COSTS = (
    "both wrappers exchange every gradient and every buffer, so each step pays twice for the same mean, and the "
    "names in a `state_dict()` begin with `module.module.`"
)
ONCE = (
    "Wrap the model once: leave out {again}, and use what is wrapped already: one `.module` then unwraps it."
)


def wrapped_again(script: Script) -> Iterable[tuple[ast.Call, ast.Call]]:
    """Wraps of what can only be a wrapper, each with the call that made that one."""
    for wrap in script.training.wraps:
        module = script.argument(wrap, "module")
        if not isinstance(module, ast.Name | ast.Call):
            continue  # what an attribute holds depends on when it is asked
        made = [o for o in script.values.origins(module) if o is not wrap]
        if made and all(o in script.training.wraps for o in made) and isinstance(made[0], ast.Call):
            yield wrap, made[0]


def wrapping_calls(script: Script, sites: Iterable[Site | None]) -> list[ast.AST]:
    """The wraps at these places; where a function of the script makes one for several callers, their calls."""
    places = list(sites)
    found: list[ast.AST] = []
    for wrap in script.training.wraps:
        if not any(stands_at(script, wrap, site) for site in places):
            continue
        function = script.names.tree(wrap).function(wrap)
        calls = [s.call for s in script.graph.sites(function)] if function is not None else []
        found += calls if len(calls) > 1 else [wrap]
    return sorted(dict.fromkeys(found), key=lambda n: (script.location(n).path, start(n)))


def takes_wrapper(script: Script, call: ast.AST) -> bool:
    """Whether a call may be given what another call of the same kind, or a wrap, has made."""
    given = [*call.args, *(k.value for k in call.keywords)] if isinstance(call, ast.Call) else []
    origins = {o for g in given if g is not UNKNOWN for o in script.values.origins(g)}
    return any(o in script.training.wraps for o in origins)
