"""FSDP2's switches of the exchange, `set_requires_gradient_sync` and its like: what is told to them, and when.

What they were last told holds until they are told otherwise, so only calls that come before the backward pass of their
own round are read.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.gradient_accumulation import Accumulation
from grader.checks.source.syntax_nodes import name_of, start
from grader.checks.source.syntax_tree import Tree

SWITCHES = ("set_requires_gradient_sync", "set_requires_all_reduce")


def switched(tree: Tree, found: Accumulation) -> Iterable[tuple[ast.expr, bool, ast.Call]]:
    """Tests in an accumulating loop, what they must be for a switch to be off, and its call."""
    for call in tree.called(*SWITCHES):
        told = call.args[0] if call.args else next((k.value for k in call.keywords), None)
        if told is None or not tree.inside(call, found.loop) or start(call) > start(found.backward):
            continue
        statement = tree.statement(call)
        above = tree.parent.get(statement)
        if above is found.loop and not isinstance(told, ast.Constant):
            yield told, False, call
        elif isinstance(above, ast.If) and tree.parent.get(above) is found.loop and _says(told, False):
            branches = (above.body, above.orelse)
            other = branches[0] if statement in above.orelse else branches[1]
            if any(_turns_on(call, node) for node in other):
                yield above.test, statement in above.body, call


def _turns_on(call: ast.Call, node: ast.stmt) -> bool:
    value = node.value if isinstance(node, ast.Expr) else None
    same = isinstance(value, ast.Call) and name_of(value) == name_of(call)
    return same and isinstance(value, ast.Call) and bool(value.args) and _says(value.args[0], True)


def _says(node: ast.expr, value: bool) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def turned_off(tree: Tree) -> Iterable[ast.Call]:
    """Calls that turn the exchange of gradients off, in a script where none ever turns it on."""
    calls = [c for c in tree.called(*SWITCHES) if c.args]
    if calls and all(_says(c.args[0], False) for c in calls):
        yield from calls
