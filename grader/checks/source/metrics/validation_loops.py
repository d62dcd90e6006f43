"""Loops that run a network over validation data, told by what they draw from or by what they are called."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import Loop, name_of
from grader.checks.source.syntax.tree import Tree

_EVAL_NAME = ("val", "eval", "test", "dev")


def validations(script: Script) -> Iterable[tuple[Loop, ast.Call, ast.expr]]:
    """Loops that evaluate, with the forward pass inside them and the network it runs."""
    drawn = {d.loop: d for d in script.training.draws}
    for tree in script.trees:
        for loop in tree.loops:
            if isinstance(loop, ast.While) or script.training.runs_backward(loop):
                continue
            draw = drawn.get(loop)
            if draw is not None:
                meant = {script.training.intent.of(x) for x in draw.loaders}
                evaluates = meant == {"eval"} or (draw.evaluates and "train" not in meant)
            else:
                evaluates = _named_validation(script, loop)
            found = _forward(script, tree, loop) if evaluates else None
            if found is not None:
                yield loop, *found


def _named_validation(script: Script, loop: ast.For | ast.AsyncFor) -> bool:
    """A loop over validation data by its words, where nobody can tell how the loader was built."""
    named = loop.iter
    while isinstance(named, ast.Call) and named.args:
        named = named.args[0]
    name = name_of(named).lower()
    words = name.split("_")
    data = any(w in name for w in ("load", "dl", "data", "batches", "iter")) or len(words) == 1
    if not data or name.endswith("epochs"):
        return False
    if any(w.startswith(_EVAL_NAME) for w in words) and not name.endswith("s"):
        return True
    function = script.names.tree(loop).function(loop)
    # `def validate(model, loader)`: the function says it, where the loader's name does not.
    says = function is not None and function.name.lower().lstrip("_").startswith(_EVAL_NAME)
    return says and not any(w.startswith("tr") for w in words) and script.training.gradients_off(loop)


def _forward(script: Script, tree: Tree, loop: Loop) -> tuple[ast.Call, ast.expr] | None:
    for statement in loop.body:
        for call in tree.calls_within(statement):
            network = script.networks.called(call)
            if network is not None:
                return call, network
    return None
