"""Tests of parameters' names that a wrapper's prefix keeps from ever holding: `name.startswith("stem")`.

DDP keeps the network in its attribute `module`, so the names of the wrapped model's parameters begin with that.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass

from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import walk

_PREFIX = "module."


@dataclass(frozen=True, slots=True)
class PrefixedTest:
    """A test, the call that gives the names, and the test as it would hold."""

    test: ast.expr
    named: ast.Call
    written: str


def missed_prefix(script: Script, names: Sequence[str]) -> PrefixedTest | None:
    """The test that meant these parameters, by their names in the network itself; None where there is none."""
    for test, name in _tests(script):
        named = _wrapped_names(script, name)
        words = [n for n in walk(test) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        meant = [w for w in words if any(one.startswith(str(w.value)) for one in names if w.value)]
        if named is not None and meant and len(meant) == len(words):
            return PrefixedTest(test, named, _with_prefix(test))
    return None


def _tests(script: Script) -> Iterable[tuple[ast.expr, ast.Name]]:
    """`name.startswith(…)`, `name == …` and `name in …`, each with the name."""
    for call in script.called("startswith"):
        if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
            yield call, call.func.value
    for node in (n for tree in script.trees for n in walk(tree.root)):
        whole = isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.In)
        if whole and isinstance(node, ast.Compare) and isinstance(node.left, ast.Name):
            yield node, node.left


def _wrapped_names(script: Script, name: ast.Name) -> ast.Call | None:
    """`model.named_parameters()` of a wrapped model, where a name comes from it."""
    for origin in script.values.origins(name):
        given = origin.iter if isinstance(origin, ast.For | ast.comprehension) else None
        if not isinstance(given, ast.Call) or not isinstance(given.func, ast.Attribute):
            continue
        if given.func.attr == "named_parameters" and script.training.wrapped(given.func.value):
            return given
    return None


def _with_prefix(test: ast.expr) -> str:
    copy = deepcopy(test)
    for node in ast.walk(copy):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = _PREFIX + node.value
    return ast.unparse(copy)
