"""Weights of a rank's share that meet in one sum of gradients: in what goes backward, and in what is sent.

Asked only where a scorer has found the sum to be wrong; it says where and what to write, and decides nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from grader.checks.source.gradients.updates import reads_gradient
from grader.checks.source.gradients.weights import of_own_share, sums
from grader.checks.source.metrics.recorded_losses import Cause
from grader.checks.source.script import Script
from grader.checks.source.syntax.arithmetic import is_scaled
from grader.checks.source.syntax.nodes import start


def weighted_twice(script: Script) -> Cause | None:
    """The weights of a rank's share that meet in one sum: in what goes backward, and in what is sent."""
    found = [*_weights_backward(script), *_weights_sent(script)]
    if len(found) < 2:
        return None
    first, again = found[0], found[-1]
    core = _core(again, lambda node: _holds_gradient(script, node)) if isinstance(again, ast.BinOp) else None
    plain = ast.unparse(core) if core is not None else ""
    undone = f"Write `{plain}` for {script.quote(again)}" if plain else f"Leave out {script.quote(again)}"
    there = f"{script.quote(first)} at {script.at(first)} has the weight already"
    return Cause(tuple(found), f"{undone} at {script.at(again)}: {there}, and m/n counts once.")


def _weights_backward(script: Script) -> list[ast.AST]:
    found: list[ast.AST] = []
    for backward in script.training.backwards:
        forwards = set(script.updates.forwards(backward))

        def of_loss(node: ast.expr, forwards: set[ast.Call] = forwards) -> bool:
            return any(part in forwards for part in script.values.closure(node))

        given = [
            *backward.args[:1],
            *([backward.func.value] if isinstance(backward.func, ast.Attribute) else []),
        ]
        for node in (made for g in given for made in dict.fromkeys((g, *script.values.origins(g)))):
            if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Mult):
                found += [node] if of_own_share(script, node.value) else []
            elif isinstance(node, ast.expr) and any(of_own_share(script, f) for f in _factors(node, of_loss)):
                found.append(node)
    return list(dict.fromkeys(found))


def _weights_sent(script: Script) -> list[ast.AST]:
    found: list[ast.AST] = []

    def holds(node: ast.expr) -> bool:
        return _holds_gradient(script, node)

    for average in sums(script):
        tree, held = script.names.tree(average.call), ast.unparse(average.tensor)
        products = [
            node
            for node in script.values.closure(average.tensor)
            if isinstance(node, ast.BinOp) and any(of_own_share(script, f) for f in _factors(node, holds))
        ]
        # Of `grad * own / all` the whole, not the product in it.
        found += [n for n in products if not any(n is not o and n in ast.walk(o) for o in products)]
        for node in ast.walk(tree.function(average.call) or tree.root):
            if not isinstance(node, ast.AugAssign) or not isinstance(node.op, ast.Mult):
                continue
            before = ast.unparse(node.target) == held and start(node) < start(average.call)
            found += [node] if before and of_own_share(script, node.value) else []
    return sorted(dict.fromkeys(found), key=start)


def _holds_gradient(script: Script, node: ast.expr) -> bool:
    """Whether gradients had a part in a value, also where a helper was given them."""
    return any(map(reads_gradient, ast.walk(node))) or any(map(reads_gradient, script.values.closure(node)))


def _factors(node: ast.expr, holds: Callable[[ast.expr], bool]) -> list[ast.expr]:
    """What a product multiplies the side with that holds the loss, or the gradient."""
    core, found = _core(node, holds), list[ast.expr]()
    while node is not core and isinstance(node, ast.BinOp):
        inner = node.left if holds(node.left) else node.right
        found.append(node.right if inner is node.left else node.left)
        node = inner
    return found


def _core(node: ast.expr, holds: Callable[[ast.expr], bool]) -> ast.expr:
    """That side of a product, by itself."""
    while is_scaled(node):
        if holds(node.left):
            node = node.left
        elif isinstance(node.op, ast.Mult) and holds(node.right):
            node = node.right
        else:
            break
    return node
