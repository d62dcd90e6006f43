"""Parameters that are made once, outside of the loop over several trainings, so that each goes on where one ended.

Asked only where a training has been seen to begin so; it says where and what to write, and decides nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from grader.checks.source.metrics.recorded_losses import Cause
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import LOOPS, start

ANEW = (
    "Set the parameters to their first values inside of the loop over the batch sizes, before each training."
)
"""What is right, for all scripts."""
_MAX_DEPTH = 4


def warm_start(script: Script) -> Cause | None:
    """Where what is trained is made: outside of the outermost loop that trains."""
    for loop in _trainings(script):
        for node in _used(script, loop):
            made = _made_before(script, node, loop)
            if made is not None:
                statement = script.names.tree(made).statement(made)
                over = f"`{_head(loop)}` ({script.at(loop)})"
                return Cause(
                    (statement, loop),
                    f"Move `{ast.unparse(statement)}` into the loop {over}, as its first line: what is trained there "
                    "is made once, and goes on where the training before it ended.",
                )
    return None


def _head(loop: ast.AST) -> str:
    return ast.unparse(loop).splitlines()[0]


def _trainings(script: Script) -> Iterator[ast.For | ast.While]:
    """Outermost loops that lead to an update of parameters by another loop or call, in the order of the text."""
    updates = list(_updates(script))
    found = []
    for tree in script.trees:
        for loop in tree.loops:
            inner = [n for n in ast.walk(loop) if isinstance(n, LOOPS) and n is not loop]
            if isinstance(loop, ast.For | ast.While) and script.updates.entries(loop, updates):
                calls = any(script.graph.targets(c) for c in tree.calls_within(loop))
                if (inner or calls) and not script.updates.loops_around(loop):
                    found.append(loop)
    # A loop that a function has which another loop calls is a training of its own, and not the loop over several.
    functions = [script.names.tree(loop).function(loop) for loop in found]
    called = {
        t
        for loop in found
        for c in script.names.tree(loop).calls_within(loop)
        for t in _reached(script, c, 0)
    }
    yield from sorted((one for one, f in zip(found, functions, strict=True) if f not in called), key=start)


def _reached(script: Script, call: ast.Call, depth: int) -> set[ast.AST]:
    """Functions that a call runs, and those that these run."""
    found: set[ast.AST] = set(script.graph.targets(call))
    if depth < _MAX_DEPTH:
        for function in list(found):
            for inner in script.names.tree(function).calls_within(function):
                found |= _reached(script, inner, depth + 1)
    return found


def _updates(script: Script) -> Iterator[ast.AST]:
    """Steps of optimizers, and what takes something from a value by hand."""
    yield from script.updates.steps
    yield from script.training.backwards
    for tree in script.trees:
        for node in ast.walk(tree.root):
            if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Sub):
                yield node
    yield from script.called("sub_")


def _used(script: Script, loop: ast.AST) -> Iterator[ast.Name]:
    """Names that a loop reads, of objects whose methods train and of parameters, the former first."""
    names = [n for n in ast.walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    tree = script.names.tree(loop)
    owners = [n for n in names if isinstance(tree.parent.get(n), ast.Attribute)]
    yield from sorted(dict.fromkeys((*owners, *names)), key=lambda n: (n not in owners, start(n)))


def _made_before(script: Script, node: ast.Name, loop: ast.AST) -> ast.expr | None:
    """The call that made what a name holds, above the loop, where it makes parameters."""
    tree = script.names.tree(loop)
    for origin in script.values.origins(node, returns=False):
        if not isinstance(origin, ast.Call) or not script.names.knows(origin):
            continue
        if script.names.tree(origin) is not tree or tree.inside(origin, loop) or start(origin) > start(loop):
            continue
        if isinstance(tree.statement(origin), ast.Assign) and _makes_parameters(script, origin):
            return origin
    return None


def _makes_parameters(script: Script, call: ast.Call) -> bool:
    """A leaf that asks for gradients, a module, zeros, or an object of the script's own that has one of these."""
    name = script.names.qualified(call.func) or ""
    if any(k.arg == "requires_grad" for k in call.keywords) or name.startswith("torch.nn."):
        return True
    if name in ("torch.zeros", "torch.zeros_like"):
        return True
    owner = script.graph.built_class(call)
    inner = [n for n in ast.walk(owner) if isinstance(n, ast.Call)] if owner is not None else []
    made = [n for n in inner if script.graph.built_class(n) is not owner and _in_setup(script, n)]
    return any(_makes_parameters(script, n) for n in made)


def _in_setup(script: Script, node: ast.AST) -> bool:
    function = script.names.tree(node).function(node)
    return getattr(function, "name", "") == "__init__"
