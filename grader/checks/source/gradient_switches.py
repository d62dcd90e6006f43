"""Where parameters are made to require gradients."""

from __future__ import annotations

import ast

from grader.checks.source.call_arguments import arguments_of
from grader.checks.source.script import Script
from grader.checks.source.syntax_nodes import start


def switched_on(script: Script) -> list[ast.AST]:
    """`net.stem.requires_grad_(True)` and `parameter.requires_grad = True`, in the order of the text.

    Of a function that is told whether to, the calls that say so. Where a model is wrapped, those after that, if any.
    """
    found: list[ast.AST] = []
    for tree in script.trees:
        for call in tree.called("requires_grad_"):
            given = arguments_of(call)
            if isinstance(call.func, ast.Attribute):
                found += [n for g in given for n in _told_so(script, call, g)] if given else [call]
        for definition in tree.attributes.get("requires_grad", ()):
            if definition.value is not None:
                found += _told_so(script, definition.node, definition.value)
    found = sorted(dict.fromkeys(found), key=start)
    later = [n for n in found if any(script.replicas.after(w, n) for w in script.training.wraps)]
    return later or found


def _told_so(script: Script, switch: ast.AST, value: ast.expr) -> list[ast.AST]:
    """The switch itself where its value is True; else the values handed to its function that are."""
    if script.values.constant(value) is True:
        return [switch]
    origins = script.values.origins(value)
    return [o for o in origins if isinstance(o, ast.Constant) and o.value is True] if len(origins) > 1 else []
