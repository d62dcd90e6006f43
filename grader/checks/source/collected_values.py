"""What a list, a meter or a progress bar was handed: the values that come out of it again.

Names places only, with no claim about ranks; which of the values differ, `divergence` asks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.metric_reductions import GROWING
from grader.checks.source.script import Script
from grader.checks.source.syntax_nodes import Definition, name_of, part_of

PROGRESS = {"tqdm", "trange", "track", "progress_bar", "alive_it"}
"""Wrappers that show how far a loop has come, and leave what it goes over as it is."""


def collected_into(script: Script, node: ast.Name) -> Iterable[tuple[ast.expr, ...]]:
    """What was added to a list or a meter of that name, call by call: `losses.append(loss.item())`."""
    tree = script.names.tree(node)
    for load in tree.loads.get(node.id, ()):
        method = tree.parent.get(load)
        if not isinstance(method, ast.Attribute) or method.attr not in GROWING:
            continue
        call = tree.parent.get(method)
        if isinstance(call, ast.Call) and call.func is method and tree.scope(load) is tree.scope(node):
            yield _given(call)


def handed_to(script: Script, node: ast.Attribute, owners: Iterable[ast.ClassDef]) -> tuple[ast.expr, ...]:
    """What the object of `meter.avg` was handed by calls of its own methods: `meter.update(loss.item(), n)`."""
    tree = script.names.tree(node)
    classes = list(owners)
    methods = {f for f in script.graph.functions if script.graph.class_of.get(f) in classes}
    name = ast.unparse(node.value)
    return tuple(
        part
        for call in tree.calls_within(tree.scope(node))
        if isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == name
        if methods.intersection(script.graph.targets(call))
        for part in _given(call)
    )


def shows_progress(definition: Definition) -> bool:
    """`steps = tqdm(steps)`: what one walks over stays the same."""
    call = part_of(definition)
    if not isinstance(call, ast.Call) or not call.args:
        return False
    return name_of(call) in PROGRESS and ast.unparse(call.args[0]) == definition.name


def _given(call: ast.Call) -> tuple[ast.expr, ...]:
    return (*call.args, *(k.value for k in call.keywords))
