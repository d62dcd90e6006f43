"""Models that do not stay what a wrapper took them for: parameters switched on, layers put in late or run by chance."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from itertools import islice

from grader.checks.source.calls.arguments import arguments_of
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import start, steps_up

_RANDOM = ("random.", "numpy.random.", "torch.rand", "torch.bernoulli")


def switched_on(script: Script) -> list[ast.AST]:
    """`net.stem.requires_grad_(True)` and `parameter.requires_grad = True`, in the order of the text.

    Of a function that is told whether to, the calls that say so. Where a model is wrapped, those after that, if any.
    """
    found: list[ast.AST] = []
    for tree in script.trees:
        for call in tree.called("requires_grad_"):
            given = arguments_of(call)
            if isinstance(call.func, ast.Attribute):
                found += [n for g in given for n in _told_so(script, call, g)] if given else [call]
        for definition in tree.attributes.get("requires_grad", ()):
            if definition.value is not None:
                found += _told_so(script, definition.node, definition.value)
    found = sorted(dict.fromkeys(found), key=start)
    later = [n for n in found if any(script.replicas.after(w, n) for w in script.training.wraps)]
    return later or found


def _told_so(script: Script, switch: ast.AST, value: ast.expr) -> list[ast.AST]:
    """The switch itself where its value is True; else the values handed to its function that are."""
    if script.values.constant(value) is True:
        return [switch]
    origins = script.values.origins(value)
    return [o for o in origins if isinstance(o, ast.Constant) and o.value is True] if len(origins) > 1 else []


def made_later(script: Script, names: Iterable[str], calls: Iterable[ast.Call]) -> list[ast.stmt]:
    """Statements below one of these calls that put in layers which have these parameters: `net.head = …`, `net[2] = …`.

    The calls build optimizers, or wrap models.
    """
    layers = {part for name in names for part in name.split(".")[:-1]}
    found: list[ast.stmt] = []
    for before in calls:
        tree = script.names.tree(before)
        for call in tree.calls_within(tree.function(before) or tree.root):
            statement = tree.statement(call)
            below = tree.function(call) is tree.function(before) and start(statement) > start(before)
            if not below or tree.enclosing_class(call) is not tree.enclosing_class(before):
                continue
            if isinstance(statement, ast.Assign) and any(_layer(t) in layers for t in statement.targets):
                found.append(statement)
    return list(dict.fromkeys(found))


def _layer(target: ast.expr) -> str:
    """What a store calls the layer that it puts in; "" of other targets."""
    if isinstance(target, ast.Attribute):
        return target.attr
    key = target.slice if isinstance(target, ast.Subscript) else None
    return str(key.value) if isinstance(key, ast.Constant) else ""


def chosen_by_chance(script: Script) -> Iterable[ast.AST]:
    """Tests in the forward pass of a module that depend on a number drawn there."""
    for tree in script.trees:
        for call in tree.calls:
            function = tree.function(call)
            forward = isinstance(function, ast.FunctionDef) and function.name in ("forward", "__call__")
            if not forward or not (script.names.qualified(call.func) or "").startswith(_RANDOM):
                continue
            around = steps_up(tree.parent, call, function)
            tests = (n for n, above in around if isinstance(above, ast.If | ast.IfExp) and above.test is n)
            yield from islice(tests, 1)
