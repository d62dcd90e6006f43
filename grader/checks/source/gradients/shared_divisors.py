"""Losses that are divided by what all ranks have together: a number that a collective has added up over them.

Says what the text divides by. Whether that is one division too many is for those to say who know what averages.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.source.calls.arguments import arguments_of, called_on
from grader.checks.source.causes import went_backward
from grader.checks.source.collectives.collective_calls import COMMON_REDUCING
from grader.checks.source.script import Script
from grader.checks.source.syntax.arithmetic import is_quotient
from grader.checks.source.syntax.nodes import start
from grader.checks.source.values.synchronized_values import SynchronizedValues


@dataclass(frozen=True, slots=True)
class SharedDivisor:
    """A division on a loss's way to `backward`, and what it divides by."""

    node: ast.BinOp | ast.AugAssign
    divisor: ast.expr


def shared_divisors(script: Script) -> Iterable[SharedDivisor]:
    """All of them, in no order."""
    shared = SynchronizedValues(script)
    for loss in went_backward(script):
        for node in (loss, *script.values.closure(loss)):
            if is_quotient(node):
                divisor = node.right
            elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div):
                divisor = node.value
            else:
                continue
            if _summed(script, shared, divisor):
                yield SharedDivisor(node, divisor)


def exchanged_for_loss(script: Script) -> frozenset[tuple[str, int]]:
    """Path and line of each collective whose result has a part in what goes backward: it can't come any later.

    A loss that is itself brought together, for the record as a rule, is none of these.
    """
    found = set()
    reducing = [call for call, name in script.collectives.direct.items() if name in COMMON_REDUCING]
    for backward in script.training.backwards if reducing else ():
        loss, tree = called_on(backward) or backward, script.names.tree(backward)
        parts = script.values.closure(loss)
        read = {_named(script, n) for n in parts if isinstance(n, ast.Name | ast.Attribute)}
        read.discard(_named(script, loss))
        for call in reducing:
            beside = script.names.tree(call) is tree and tree.function(call) is tree.function(backward)
            if beside and start(call) > start(backward):
                continue
            if call in parts or any(_named(script, tensor) in read for tensor in _tensors(call)):
                place = script.location(call)
                found.add((place.path, place.line))
    return frozenset(found)


def _named(script: Script, node: ast.AST) -> tuple[ast.AST | None, str]:
    """A name or an attribute by its text and the function in which it stands."""
    return (script.names.tree(node).function(node) if script.names.knows(node) else None, ast.unparse(node))


def _tensors(call: ast.Call) -> Iterable[ast.expr]:
    """What a collective is given: tensors, and what stands in lists of them."""
    for given in arguments_of(call):
        for one in given.elts if isinstance(given, ast.List | ast.Tuple) else (given,):
            held = one.value if isinstance(one, ast.Subscript) else one
            if isinstance(held, ast.Name | ast.Attribute):
                yield held


def _summed(script: Script, shared: SynchronizedValues, divisor: ast.expr) -> bool:
    named = (n for n in ast.walk(divisor) if isinstance(n, ast.Name | ast.Attribute))
    if any(shared.shared(name) for name in named):
        return True
    return any(part in script.collectives.running for part in script.values.closure(divisor))
