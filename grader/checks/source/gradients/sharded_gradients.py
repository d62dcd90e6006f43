"""Gradients of a sharded model of which each rank takes its own part for the whole: scaled by a norm of it, or summed.

`grad.to_local()` gives the part that this rank holds. A norm over such parts is another number on every rank, until a
collective has added the squares up: what nothing brings together scales the parts of one gradient by several factors.
A sum over the ranks adds up parts of one parameter that do not belong together.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.source.gradients.averaging import Average
from grader.checks.source.gradients.updates import reads_gradient
from grader.checks.source.script import Script
from grader.checks.source.syntax.arithmetic import SCALING, scales
from grader.checks.source.syntax.nodes import name_of, walk
from grader.checks.source.training_loops import FULLY_SHARD

_NORMS = {"norm", "vector_norm", "square", "pow", "dot", "vdot"}
_BRINGING = {"full_tensor", "redistribute"}
_SUMS = ("all_reduce", "all_reduce_coalesced", "reduce")


@dataclass(frozen=True, slots=True)
class OwnNorm:
    """What scales the gradients, the norm that it is made of, and the call that shards the model."""

    scale: ast.AST
    norm: ast.AST
    sharded: ast.Call


def norms_of_own_parts(script: Script) -> Iterable[OwnNorm]:
    """Such scalings, the first of each function."""
    sharded = script.calls(*FULLY_SHARD)
    if not sharded or not script.called("to_local"):
        return
    seen: set[ast.AST | None] = set()
    for scale, scaled, factor in _scalings(script):
        function = script.names.tree(scale).function(scale)
        if function in seen or not _of_own_gradient(script, scaled):
            continue
        parts = [p for p in script.values.closure(factor) if isinstance(p, ast.Call | ast.BinOp)]
        made = [p for p in parts if _of_own_gradient(script, p)]
        norms = [p for p in made if name_of(p) in _NORMS or _is_square(p)]
        brought = any(
            name_of(p) in _BRINGING or script.reductions.reduces(p) for p in parts if isinstance(p, ast.Call)
        )
        if norms and not brought and not script.reductions.takes(_made_of_norms(made, norms)):
            seen.add(function)
            yield OwnNorm(scale, min(norms, key=lambda n: (n.lineno, n.col_offset)), sharded[-1])


def _scalings(script: Script) -> Iterable[tuple[ast.AST, ast.expr, ast.expr]]:
    for call in script.called(*SCALING):
        if isinstance(call.func, ast.Attribute) and call.args:
            yield call, call.func.value, call.args[0]
    for tree in script.trees:
        for node in walk(tree.root):
            if scales(node):
                yield node, node.target, node.value


def _of_own_gradient(script: Script, node: ast.AST) -> bool:
    """Whether a value is made of the local part of a gradient."""
    target = _loaded(script, node)
    return any(
        isinstance(n, ast.Call)
        and name_of(n) == "to_local"
        and any(map(reads_gradient, script.values.closure(n)))
        for one in target
        for n in script.values.closure(one)
    )


def _loaded(script: Script, node: ast.AST) -> Iterable[ast.AST]:
    """A node, or what a name that is stored to held before."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return [
            d.value for d in script.names.lookup(node.id, node) if d.value is not None and d.kind != "augment"
        ]
    return [node]


def _is_square(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and (
        isinstance(node.op, ast.Pow)
        or (isinstance(node.op, ast.Mult) and ast.unparse(node.left) == ast.unparse(node.right))
    )


def _made_of_norms(made: list[ast.Call | ast.BinOp], norms: list[ast.Call | ast.BinOp]) -> list[ast.AST]:
    """The norms, and what they were added up to."""
    inner = set(norms)
    return [*norms, *(m for m in made if m not in inner and not inner.isdisjoint(walk(m)))]


def adds_parts(script: Script, average: Average) -> ast.Call | None:
    """The call that shards the model where an average adds up its parts; None where it doesn't.

    Over a group of their own the copies of one part may meet, and a replicated DTensor is whole on every rank.
    """
    sharded = script.calls(*FULLY_SHARD)
    if (
        not sharded
        or script.collectives.direct.get(average.call) not in _SUMS
        or script.mentioned("Replicate")
    ):
        return None
    made = (n for n in script.values.closure(average.tensor) if isinstance(n, ast.Call | ast.Attribute))
    local = any(name_of(n) == ("to_local" if isinstance(n, ast.Call) else "_local_tensor") for n in made)
    return sharded[-1] if local else None
