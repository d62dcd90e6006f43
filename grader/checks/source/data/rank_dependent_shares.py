"""Shards, batches and orders that the text itself makes different on one rank than on another.

Sizes that only a run can know are left to the run.
"""

from __future__ import annotations

import ast
from itertools import pairwise

from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import UNKNOWN, name_of


def differs(script: Script, size: ast.expr) -> bool:
    """Whether a number depends on which rank it is: `32 * (rank + 1)`, `64 if rank == 0 else 32`."""
    if script.ranks.rank(size):
        return True
    found = [n for n in script.values.closure(size) if isinstance(n, ast.IfExp)]
    for choice in found:
        values = [script.values.constant(choice.body), script.values.constant(choice.orelse)]
        if script.conditions.of(choice.test).partial and UNKNOWN not in values and values[0] != values[1]:
            return True
    return False


def bounds(script: Script, nodes: list[ast.AST]) -> list[int]:
    """Sizes of shards between the entries of a literal table that is indexed by `rank` and by `rank + 1`."""
    for node in nodes:
        if (
            isinstance(node, ast.Subscript)
            and isinstance(node.slice, ast.BinOp)
            and script.ranks.rank(node.slice)
        ):
            for table in script.values.origins(node.value):
                entries = [script.values.constant(e) for e in getattr(table, "elts", ())]
                numbers = [e for e in entries if isinstance(e, int)]
                sizes = [b - a for a, b in pairwise(numbers)]
                if len(numbers) == len(entries) and len(set(sizes)) > 1:
                    return sizes
    return []


def last_takes_rest(script: Script, node: ast.AST) -> bool:
    """`len(data) if rank == world - 1 else …`: the last rank also gets what division left over."""
    if not isinstance(node, ast.IfExp) or not script.conditions.of(node.test).partial:
        return False
    compared = node.test.comparators if isinstance(node.test, ast.Compare) else []
    return any(isinstance(c, ast.BinOp) and isinstance(c.op, ast.Sub) for c in compared)


def made_apart(script: Script, nodes: list[ast.AST]) -> bool:
    """A function of the submission that returns one slice on some ranks and another slice on the others."""
    for node in nodes:
        for target in script.graph.targets(node) if isinstance(node, ast.Call) else ():
            returns = script.names.tree(target).returns.get(target, [])
            sliced = [r for r in returns if isinstance(r.value, ast.Subscript)]
            if len(sliced) > 1 and any(script.guards.partial(r) for r in sliced):
                return True
    return False


def in_order(loop: ast.For | ast.AsyncFor) -> str:
    """How a loop over a set begins once it is sorted."""
    made = loop.iter
    if (
        isinstance(made, ast.Call)
        and name_of(made) in ("set", "frozenset", "list", "tuple")
        and len(made.args) == 1
    ):
        made = made.args[0]
    return f"for {ast.unparse(loop.target)} in sorted({ast.unparse(made)}):"


def is_unordered(script: Script, source: ast.expr) -> bool:
    """Whether what a loop goes through has another order in each process: a set, unless it is sorted first."""
    for origin in script.values.origins(source):
        if isinstance(origin, ast.Call):
            name = script.names.qualified(origin.func)
            if name in ("set", "frozenset"):
                return True
            if name in ("enumerate", "list", "tuple", "reversed", "iter") and origin.args:
                return origin.args[0] is not source and is_unordered(script, origin.args[0])
        elif isinstance(origin, ast.Set | ast.SetComp):
            entries = getattr(origin, "elts", [origin])
            return not all(isinstance(e, ast.Constant) and isinstance(e.value, int) for e in entries)
        elif isinstance(origin, ast.BinOp) and isinstance(origin.op, ast.BitOr | ast.BitAnd):
            return is_unordered(script, origin.left) and is_unordered(script, origin.right)
    return False
