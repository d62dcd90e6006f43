"""What a list, a meter or a progress bar was handed: the values that come out of it again.

Names places only, with no claim about ranks; which of the values differ, `divergence` asks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.calls.arguments import arguments_of, called_on
from grader.checks.source.calls.sites import Calls
from grader.checks.source.syntax.nodes import Definition, name_of, part_of
from grader.checks.source.syntax.tree import Tree

GROWING = {"append", "extend", "add", "update", "add_batch", "insert"}
"""Methods that put what they are given into the object."""
PROGRESS = {"tqdm", "trange", "track", "progress_bar", "alive_it"}
"""Wrappers that show how far a loop has come, and leave what it goes over as it is."""


def collected_into(tree: Tree, node: ast.Name) -> Iterable[tuple[ast.expr, ...]]:
    """What was added to a list or a meter of that name, call by call: `losses.append(loss.item())`."""
    for call in tree.called(*GROWING):
        owner = called_on(call)
        if isinstance(owner, ast.Name) and owner.id == node.id and tree.scope(owner) is tree.scope(node):
            yield tuple(arguments_of(call))


def handed_to(
    tree: Tree, calls: Calls, node: ast.Attribute, owners: Iterable[ast.ClassDef]
) -> tuple[ast.expr, ...]:
    """What the object of `meter.avg` was handed by calls of its own methods: `meter.update(loss.item(), n)`."""
    classes = list(owners)
    methods = {f for f in calls.functions if calls.class_of.get(f) in classes}
    name = ast.unparse(node.value)
    return tuple(
        part
        for call in tree.calls_within(tree.scope(node))
        if isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == name
        if methods.intersection(calls.targets(call))
        for part in arguments_of(call)
    )


def shows_progress(definition: Definition) -> bool:
    """`steps = tqdm(steps)`: what one walks over stays the same."""
    call = part_of(definition)
    if not isinstance(call, ast.Call) or not call.args:
        return False
    return name_of(call) in PROGRESS and ast.unparse(call.args[0]) == definition.name
