"""A name that is bound to a fresh network after its first one was trained, and whose weights are saved in the end.

Asked only where saved weights have been seen to know too little; it says where and what to write, and decides nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from grader.checks.source.causes import weight_saves
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import Definition, ancestors, end, name_of, start, walk


@dataclass(frozen=True, slots=True)
class ReplacedNetwork:
    """The name, where its first network was trained, what bound it to another one, and the save."""

    name: str
    trained: ast.AST
    bound: ast.AST
    save: ast.AST


def replaced_networks(script: Script) -> Iterator[ReplacedNetwork]:
    """Each save of a network that a name was given after the training of another one under that name."""
    for save in weight_saves(script):
        tree = script.names.tree(save)
        for node in sorted(_saved_names(save), key=start):
            definitions = tree.definitions.get(tree.scope(node), {}).get(node.id, [])
            before = sorted(
                (d for d in definitions if start(d.node) < start(save)), key=lambda d: start(d.node)
            )
            if len(before) < 2 or not _is_fresh(script, before[-1], node.id):
                continue
            later = (before[-1].node, save)
            if _loaded_between(script, node.id, *later):
                continue
            first = next(
                (d for d in before if not _is_fresh(script, d, node.id) or d is before[0]), before[0]
            )
            following = next(d for d in before if start(d.node) > start(first.node))
            loop = _training(script, node.id, first.node, following.node)
            if loop is not None:
                yield ReplacedNetwork(node.id, loop, before[-1].node, save)
                break


def _saved_names(save: ast.AST) -> Iterator[ast.Name]:
    """`model` of `torch.save(model.state_dict(), path)`."""
    for part in walk(save):
        if (
            isinstance(part, ast.Call)
            and name_of(part) == "state_dict"
            and isinstance(part.func, ast.Attribute)
        ):
            owner = part.func.value
            inner = owner.value if isinstance(owner, ast.Attribute) and owner.attr == "module" else owner
            if isinstance(inner, ast.Name):
                yield inner


def _is_fresh(script: Script, definition: Definition, name: str) -> bool:
    """Whether a network is built there of nothing that the name held: no copy, wrapper or average of it."""
    value, tree = definition.value, script.names.tree(definition.node)
    if definition.kind != "assign" or not isinstance(value, ast.Call):
        return False
    if any(isinstance(above, ast.If) for above in ancestors(tree.parent, definition.node)):
        return False
    read = {n.id for n in walk(value) if isinstance(n, ast.Name)}
    copies = any("copy" in name_of(n) or "load" in name_of(n) for n in walk(value) if isinstance(n, ast.Call))
    return name not in read and not copies


def _loaded_between(script: Script, name: str, bound: ast.AST, save: ast.AST) -> bool:
    """Whether the new network is given weights that were kept: then it is the one that was trained."""
    tree = script.names.tree(save)
    takes = (
        "load_state_dict",
        "copy_",
        "load_weights",
        "set_model_state_dict",
        "load",
        "vector_to_parameters",
    )
    return any(
        start(bound) < start(c) < start(save)
        and any(isinstance(n, ast.Name) and n.id == name for n in walk(c))
        for c in tree.called(*takes)
    )


def _training(script: Script, name: str, since: ast.AST, until: ast.AST) -> ast.AST | None:
    """The loop between two places that trains what the name holds."""
    tree = script.names.tree(since)
    for loop in tree.loops:
        if not end(since) < start(loop) or not start(loop) < start(until) or tree.inside(until, loop):
            continue
        reads = any(isinstance(n, ast.Name) and n.id == name for n in walk(loop))
        if reads and script.updates.entries(loop, script.updates.steps):
            return loop
    return None
