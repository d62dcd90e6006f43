"""Models that are trained beside wrapped ones and that no wrapper holds, as the text shows them.

Every rank that trains a model on what all ranks have alike computes the same gradients, and nothing has to average
them: a copy that a wrapped model is held against, say. So forward passes over such inputs are none of these: over what
collectives brought together, or over the whole that others share out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from grader.checks.source.calls.arguments import arguments_of
from grader.checks.source.causes import CauseInText, made_of_rank
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import Definition, name_of, start, walk

_ALIKE = (
    "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_object", "all_gather_tensor",
    "all_reduce", "all_reduce_coalesced", "broadcast", "broadcast_object_list",
)  # fmt: skip
"""Collectives after which all ranks hold the same, in their first argument or as their result."""


def trained_outside(script: Script) -> Iterable[CauseInText]:
    """A model with an optimizer of its own that is trained, but that no wrapper holds."""
    if script.averaging.all:
        return
    held = {n for w in script.training.wraps for n in script.replicas.made_of(w)}
    for optimizer in script.updates.optimizers:
        given = optimizer.args[0] if optimizer.args else script.argument(optimizer, "params")
        func = given.func if isinstance(given, ast.Call) else None
        if not isinstance(func, ast.Attribute) or func.attr != "parameters":
            continue
        made = script.values.origins(func.value, returns=False)
        if not made or not all(script.replicas.builds_model(o) and o not in held for o in made):
            continue
        if any(script.replicas.on_some_ranks(n) or script.guards.alone(n) for n in (optimizer, *made)):
            continue
        for backward in script.training.backwards:
            called = [
                c
                for c in script.updates.forwards(backward)
                if isinstance(c.func, ast.Name | ast.Attribute)
                and not script.graph.targets(c)
                and not script.training.gradients_off(c)
                and set(script.values.origins(c.func, returns=False)) & set(made)
                and not _alike_on_all_ranks(script, c)
            ]
            if called:
                # `forwards` is in no order of its own.
                first = min(called, key=start)
                yield CauseInText(
                    (first,),
                    f"{script.at(first)} trains the model made in {script.at(made[0])}, which is not the "
                    f"one that {script.at(script.training.wraps[0])} wraps. Nothing averages its gradients: each rank "
                    "trains one of its own.",
                    "Wrap every model that is trained, and call the wrapper.",
                )
                break


def _alike_on_all_ranks(script: Script, forward: ast.Call) -> bool:
    """Whether a call is given what all ranks have alike, as far as the text shows it."""
    filled, shared_out = set(_filled(script, forward)), set(_shared_out(script))
    together: list[ast.AST] = []

    def is_alike(node: ast.AST) -> bool:
        """What a collective made, with all that it was made of, which may well be a rank's own."""
        alike = isinstance(node, ast.Call) and name_of(node) in _ALIKE
        alike = alike or not filled.isdisjoint(_definitions(script, (node,)))
        together.extend([node] * alike)
        return alike

    given = arguments_of(forward)
    rest = [part for one in given for part in script.values.parts(one, is_alike)]
    if any(isinstance(part, ast.expr) and script.ranks.rank(part) for part in rest):
        return False
    return bool(together) or not shared_out.isdisjoint(_definitions(script, rest))


def _definitions(script: Script, nodes: Iterable[ast.AST]) -> Iterator[Definition]:
    for node in nodes:
        if isinstance(node, ast.Name):
            yield from script.scopes.reaching(node.id, node)


def _filled(script: Script, forward: ast.Call) -> Iterator[Definition]:
    """What collectives before a call fill, `parts` of `all_gather(parts, batch)`."""
    scope = script.names.tree(forward).scope(forward)
    for tree in script.trees:
        for call in tree.called(*_ALIKE):
            given = arguments_of(call)[:1]
            if tree.scope(call) is not scope or start(call) < start(forward):
                yield from _definitions(script, (n for first in given for n in walk(first)))


def _shared_out(script: Script) -> Iterator[Definition]:
    """What wrapped models are given a rank's share of, `images` of `images[rank::world]`."""
    for backward in script.training.backwards:
        for forward in script.updates.forwards(backward):
            given = arguments_of(forward) if script.replicas.wrap_of(forward.func) else ()
            for part in (p for one in given for p in script.values.closure(one)):
                if isinstance(part, ast.Subscript) and made_of_rank(script, part.slice):
                    yield from _definitions(script, walk(part.value))
