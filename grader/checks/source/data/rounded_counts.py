"""Counts of samples that a loader's data or sampler round down, `size // 512 * 512`: what is left over is in no epoch.

Like `causes`, it answers with nodes, the likeliest first, and decides nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.causes import names_world
from grader.checks.source.data.share_causes import loader_at
from grader.checks.source.script import UNKNOWN, Script
from grader.model.call_site import Site


def rounded_counts(script: Script, site: Site | None, expected: int, missing: int) -> Iterable[ast.expr]:
    """Roundings of what a loader at a place is given that may have left out as many of so many samples.

    A multiple of the number of ranks, or of a global batch, leaves out less than what counts as missing.
    """
    for part in _given(script, site):
        for node in ast.walk(part):
            unit = _unit(node) if isinstance(node, ast.BinOp) else None
            if isinstance(node, ast.expr) and unit is not None and not names_world(script, unit):
                number = script.values.constant(unit)
                if number is UNKNOWN or (isinstance(number, int) and number and expected % number == missing):
                    yield node


def dealt_in_turn(script: Script, cuts: Iterable[ast.AST]) -> bool:
    """Whether a rank's share is every k-th sample already, `order[rank::world]`."""
    slices = (n.slice for cut in cuts for n in ast.walk(cut) if isinstance(n, ast.Subscript))
    return any(
        isinstance(one, ast.Slice)
        and one.lower is not None
        and one.step is not None
        and bool(script.ranks.rank(one.lower))
        and bool(script.ranks.world(one.step))
        for one in slices
    )


def _given(script: Script, site: Site | None) -> Iterable[ast.AST]:
    """What a loader's data and samplers are made of, and the classes that make them."""
    loader = loader_at(script, site)
    if loader is None:
        return
    seen: set[ast.AST] = set()
    for name in ("sampler", "batch_sampler", "dataset"):
        given = script.argument(loader, name)
        for part in script.values.closure(given) if isinstance(given, ast.expr) else ():
            made = script.graph.built_class(part) if isinstance(part, ast.Call) else None
            for one in (part, made):
                if one is not None and one not in seen:
                    seen.add(one)
                    yield one


def _unit(node: ast.BinOp) -> ast.expr | None:
    """What a count is rounded down to a multiple of: `k` of `n // k * k` and of `n - n % k`."""
    for inner, other in ((node.left, node.right), (node.right, node.left)):
        if (
            isinstance(node.op, ast.Mult)
            and isinstance(inner, ast.BinOp)
            and isinstance(inner.op, ast.FloorDiv)
        ):
            return other if ast.dump(inner.right) == ast.dump(other) else None
    rest = node.right
    if isinstance(node.op, ast.Sub) and isinstance(rest, ast.BinOp) and isinstance(rest.op, ast.Mod):
        return rest.right if ast.dump(rest.left) == ast.dump(node.left) else None
    return None
