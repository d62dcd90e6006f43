"""Forward passes over what all ranks have alike: what collectives brought together, or the whole that others share out.

Every rank that trains a model on the same computes the same gradients, and nothing has to average them: a copy that a
wrapped model is held against, say.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from grader.checks.source.call_arguments import arguments_of
from grader.checks.source.causes import made_of_rank
from grader.checks.source.script import Script
from grader.checks.source.syntax_nodes import Definition, name_of, start, walk

_ALIKE = (
    "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_object", "all_gather_tensor",
    "all_reduce", "all_reduce_coalesced", "broadcast", "broadcast_object_list",
)  # fmt: skip
"""Collectives after which all ranks hold the same, in their first argument or as their result."""


def alike_on_all_ranks(script: Script, forward: ast.Call) -> bool:
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
