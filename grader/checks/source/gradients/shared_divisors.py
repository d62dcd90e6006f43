"""Losses that are divided by what all ranks have together: a number that a collective has added up over them.

Says what the text divides by. Whether that is one division too many is for those to say who know what averages.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.source.causes import went_backward
from grader.checks.source.script import Script
from grader.checks.source.syntax.arithmetic import is_quotient
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
    """Path and line of each collective whose result a loss is divided by before it goes backward."""
    found = set()
    for one in shared_divisors(script):
        wanted = {ast.unparse(n) for n in ast.walk(one.divisor) if isinstance(n, ast.Name | ast.Attribute)}
        for call in script.collectives.running:
            given = {ast.unparse(n) for a in call.args for n in ast.walk(a)}
            if wanted & given or call in script.values.closure(one.divisor):
                place = script.location(call)
                found.add((place.path, place.line))
    return frozenset(found)


def _summed(script: Script, shared: SynchronizedValues, divisor: ast.expr) -> bool:
    named = (n for n in ast.walk(divisor) if isinstance(n, ast.Name | ast.Attribute))
    if any(shared.shared(name) for name in named):
        return True
    return any(part in script.collectives.running for part in script.values.closure(divisor))
