"""Dropout in a network's forward pass that evaluation mode does not switch off.

Functions of torch don't know the network's mode unless they are told, and a layer that is built in the forward pass is
always a new one, in training mode. Whatever tests the mode on the way there counts.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from grader.checks.source.calls.ways import led_to
from grader.checks.source.models.networks import FUNCTIONAL_DROPOUTS
from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax.nodes import (
    FUNCTIONS,
    VARIABLES,
    Function,
    earlier_in_block,
    literal,
    name_of,
    steps_up,
    walk,
)
from grader.checks.source.values.reaching_assignments import leaves

ATTENTION = "torch.nn.functional.scaled_dot_product_attention"
_LAYERS = (
    "torch.nn.Dropout", "torch.nn.Dropout1d", "torch.nn.Dropout2d", "torch.nn.Dropout3d", "torch.nn.AlphaDropout",
    "torch.nn.FeatureAlphaDropout",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ConstantDropout:
    """One such call.

    Attributes:
        call: of the function, or of the layer that is built. argument: by which it is told the mode; "" of a layer.
        rate: as it is given; None where it isn't. known: whether it is known to be more than 0.
        method: the function is a method of the network, so that it has `self.training`.
    """

    call: ast.Call
    argument: str
    rate: ast.expr | None
    known: bool
    method: bool


def constant_dropouts(script: Script) -> Iterator[ConstantDropout]:
    """All of them, by kind, in the order of the text."""
    forward = led_to(
        script.names,
        script.graph,
        lambda f: f.name in ("forward", "__call__") and _of_network(script, f),
        lambda site, _: not _minds_mode(script, site.call),
    )
    for call in script.calls(*FUNCTIONAL_DROPOUTS, ATTENTION, *_LAYERS):
        function = script.names.tree(call).function(call)
        if function is None or function not in forward or _minds_mode(script, call):
            continue
        found = _look(script, call, _of_network(script, function))
        if found is not None:
            yield found


def _look(script: Script, call: ast.Call, method: bool) -> ConstantDropout | None:
    name = script.names.qualified(call.func) or ""
    if name in _LAYERS:
        used = script.names.tree(call).parent.get(call)
        run = isinstance(used, ast.Call) and used.func is call
        return ConstantDropout(call, "", None, True, method) if run else None
    if name == ATTENTION:
        argument, rate = "dropout_p", script.argument(call, "dropout_p")
        if rate is None:
            return None
    else:
        argument = "training" if name.startswith("torch.nn.") else "train"
        rate, told = script.argument(call, "p"), script.argument(call, argument)
        if told is not None and literal(told) is not True:
            return None
    if rate is UNKNOWN or (rate is not None and any(map(_is_mode, script.values.closure(rate)))):
        return None
    number = script.values.constant(rate) if rate is not None else 0.5
    if number == 0:
        return None
    return ConstantDropout(call, argument, rate, number is not UNKNOWN, method)


def _of_network(script: Script, function: Function) -> bool:
    owner = script.graph.class_of.get(function)
    return owner is not None and script.networks.is_module(owner)


def _minds_mode(script: Script, node: ast.AST) -> bool:
    """Whether a node runs in one mode only: under a test of it, or after one that leaves."""
    tree = script.names.tree(node)
    for child, above in steps_up(tree.parent, node):
        test = getattr(above, "test", None) if isinstance(above, ast.If | ast.IfExp | ast.While) else None
        tests = above.values if isinstance(above, ast.BoolOp) else [test] if test is not None else []
        if any(_tells_mode(n) for one in tests for n in walk(one)):
            return True
        earlier = earlier_in_block(tree.parent, child)
        gone = (s for s in earlier if isinstance(s, ast.If) and leaves(script.names, s.body))
        if any(_tells_mode(n) for s in gone for n in walk(s.test)):
            return True
        if isinstance(above, FUNCTIONS):
            return False
    return False


def _is_mode(node: ast.AST) -> bool:
    return isinstance(node, VARIABLES) and name_of(node) in ("training", "is_training", "train", "is_train")


def _tells_mode(node: ast.AST) -> bool:
    """The same of a test, which says it in many ways."""
    words = name_of(node).lower() if isinstance(node, VARIABLES) else ""
    return "train" in words or "eval" in words or "infer" in words
