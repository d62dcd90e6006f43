"""Warm-ups whose length counts epochs, while what is held against it counts optimizer steps.

Asked only where a run has shown that the rate came to its peak after just so many steps; decides nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable

from grader.checks.source.causes import CauseInText
from grader.checks.source.ranks.written_ranks import held_name
from grader.checks.source.script import Script
from grader.checks.source.syntax.arithmetic import is_quotient
from grader.checks.source.syntax.nodes import FUNCTIONS, walk

_SCHEDULES = "torch.optim.lr_scheduler."
_LENGTHS = {"LinearLR": "total_iters", "ConstantLR": "total_iters", "SequentialLR": "milestones"}


def counted_in_epochs(script: Script, lengths: Collection[int]) -> CauseInText | None:
    """The length that is one of these numbers of steps, by itself; None where it is made of batches, or not found."""
    for given, used in (*_of_schedules(script), *_by_hand(script)):
        number = script.values.constant(given)
        if isinstance(number, bool) or not isinstance(number, int) or number not in lengths:
            continue
        written = next(iter(script.values.origins(given)), given)
        statement = script.names.tree(written).statement(written)
        batches = batches_of_epoch(script, statement)
        return CauseInText(
            (written, used),
            f"The warm-up is {number} long ({script.quote(statement)} at {script.at(statement)}), and at every "
            f"optimizer step {script.at(used)} reaches {script.quote(used)}: it is as many steps long, not epochs.",
            f"Count the warm-up in steps, as many as so many epochs have: `{number} * {batches}` at "
            f"{script.at(statement)}.",
        )
    return None


def _of_schedules(script: Script) -> Iterable[tuple[ast.expr, ast.expr]]:
    """What schedules of torch are given as a length, each with the call."""
    for name, call in script.calls_under(_SCHEDULES):
        argument = _LENGTHS.get(name.rpartition(".")[2])
        given = script.argument(call, argument) if argument else None
        if isinstance(given, ast.expr):
            yield from ((one, call) for one in (given.elts[:1] if isinstance(given, ast.List) else (given,)))


def _by_hand(script: Script) -> Iterable[tuple[ast.expr, ast.expr]]:
    """What a counter is held against, or divided by, each with the comparison or division."""
    counters = {
        ast.unparse(node.target)
        for tree in script.trees
        for node in walk(tree.root)
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add)
    }
    for tree in script.trees:
        for node in walk(tree.root):
            if isinstance(node, ast.Compare) and len(node.comparators) == 1:
                sides = (node.left, node.comparators[0])
            elif is_quotient(node):
                sides = (node.left, node.right)
            else:
                continue
            if _counts(sides[0], counters | _given_steps(script, node)):
                yield sides[1], node


def _counts(node: ast.expr, counters: Collection[str]) -> bool:
    return any(isinstance(n, ast.Name | ast.Attribute) and ast.unparse(n) in counters for n in ast.walk(node))


def _given_steps(script: Script, node: ast.AST) -> set[str]:
    """What a function that a schedule calls with the number of its steps calls this."""
    tree = script.names.tree(node)
    function = tree.scope(node)
    if not isinstance(function, (ast.Lambda, *FUNCTIONS)) or not function.args.args:
        return set()
    for call in script.calls(f"{_SCHEDULES}LambdaLR"):
        given = (*call.args[1:], *(k.value for k in call.keywords))
        if any(function in script.values.origins(one) for one in given):
            return {function.args.args[0].arg}
    return set()


def batches_of_epoch(script: Script, node: ast.AST) -> str:
    """What the text calls the number of batches of an epoch, where a length is written."""
    tree = script.names.tree(node)
    loaders = script.training.loaders()
    for name in (n for n in walk(tree.scope(node)) if isinstance(n, ast.Name | ast.Call)):
        for made in script.values.origins(name):
            counted = isinstance(made, ast.Call) and script.names.qualified(made.func) == "len" and made.args
            if (
                counted
                and isinstance(made, ast.Call)
                and set(loaders) & set(script.values.origins(made.args[0]))
            ):
                return ast.unparse(name)
    held = (held_name(script, one, node) for one in loaders if script.training.roles(one).trains)
    return next((f"len({name})" for name in held if name), "len(train_loader)")
