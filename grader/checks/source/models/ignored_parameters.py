"""Where the text tells DDP to leave some of a model's tensors alone, and how it comes to name parameters among them."""

from __future__ import annotations

import ast

from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import name_of

_TELLING = "_set_params_and_buffers_to_ignore_for_model"
_HELD = "_ddp_params_and_buffers_to_ignore"


def ignoring(script: Script) -> list[ast.AST]:
    """Calls and assignments that tell DDP what to leave alone."""
    stored = [d.node for tree in script.trees for d in tree.attributes.get(_HELD, ())]
    return [*script.called(_TELLING), *stored]


def advice(script: Script, told: list[ast.AST]) -> tuple[tuple[ast.AST, ...], str]:
    """What brought parameters among the names, and what to write."""
    for node in told:
        for given in _names_given(script, node):
            taken = [c for c in script.values.closure(given) if isinstance(c, ast.Call)]
            for call in taken:
                if name_of(call) == "state_dict":
                    return (call,), (
                        f"{script.quote(call)} at {script.at(call)} has the parameters, too. Take the names of buffers "
                        "alone, `for name, _ in module.named_buffers()`: what is trained must not be among them."
                    )
    return (), "Name buffers alone there, or what is not trained: the others DDP has to average."


def _names_given(script: Script, node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Call):
        return [*node.args[1:], *(k.value for k in node.keywords)]
    value = getattr(script.names.tree(node).statement(node), "value", None)
    return [value] if isinstance(value, ast.expr) else []
