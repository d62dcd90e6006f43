"""Parameters kept as a generator that something has gone through already: a loop that averages over them finds nothing.

`model.parameters()` gives its parameters once. Told only where every way to the loop leads to one such generator.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from grader.checks.source.causes import CauseInText
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import start
from grader.model.fix import Fix

_OF_MODULES = ("parameters", "named_parameters")
_BUILTINS = ("zip", "map", "filter", "iter", "reversed", "enumerate")
_GOING_THROUGH = ("list", "tuple", "set", "sum", "sorted", "max", "min", "any", "all", "dict")
_MAX_DEPTH = 4


def used_up(script: Script) -> CauseInText | None:
    """A loop that averages gradients over a generator which an optimizer, or another loop, has used up."""
    for average in script.averaging.all:
        loop = next((n for n in script.updates.loops_around(average.call) if isinstance(n, ast.For)), None)
        kept = _kept(script, loop.iter) if loop is not None else None
        if loop is None or kept is None:
            continue
        user = next((u for u in _users(script, kept) if u is not loop.iter), None)
        if user is None and not _again(script, loop, kept):
            continue
        statement = script.names.tree(kept).statement(kept)
        told = (
            f"{script.at(user)} uses it up, so the loop at {script.at(loop)} finds nothing to average"
            if user is not None
            else f"the loop at {script.at(loop)} finds nothing to average in any round after the first"
        )
        return CauseInText(
            tuple(dict.fromkeys((statement, loop, *([user] if user is not None else ())))),
            f"{script.at(statement)} keeps {script.quote(kept)}, a generator, which can be gone through once: {told}. "
            "Each rank steps with its own gradients.",
            f"Keep a list: write `list({ast.unparse(kept)})` for {script.quote(kept)} at {script.at(kept)}.",
            _as_list(script, kept),
        )
    return None


def _kept(script: Script, node: ast.AST, depth: int = 0) -> ast.expr | None:
    """The one generator that a name or attribute was given, also by callers; None where it is not that for certain."""
    tree = script.names.tree(node)
    found: list[ast.expr | None] = []
    if isinstance(node, ast.Attribute):
        stores = [d for t in script.trees for d in t.attributes.get(node.attr, ())]
        found = [d.value if d.kind == "assign" and not d.path else None for d in stores]
    elif isinstance(node, ast.Name):
        for definition in script.scopes.reaching(node.id, node):
            function = tree.function(definition.node)
            if definition.kind == "parameter" and function is not None and depth < _MAX_DEPTH:
                given = [script.graph.bound(s, function, node.id) for s in script.graph.sites(function)]
                known = [g for g in given if g is not None and script.names.knows(g)]
                found += [_kept(script, g, depth + 1) for g in known] if len(known) == len(given) else [None]
            else:
                found.append(
                    definition.value if definition.kind == "assign" and not definition.path else None
                )
    if len(set(found)) != 1:
        return None
    return found[0] if found[0] is not None and _once(script, found[0]) else None


def _once(script: Script, value: ast.expr) -> bool:
    """Whether a value can be gone through once: a generator of a module's, of Python's own, or written out."""
    if isinstance(value, ast.GeneratorExp):
        return True
    if not isinstance(value, ast.Call) or script.graph.targets(value):
        return False
    if isinstance(value.func, ast.Attribute):
        return value.func.attr in _OF_MODULES
    return isinstance(value.func, ast.Name) and value.func.id in _BUILTINS


def _users(script: Script, kept: ast.expr) -> Iterator[ast.AST]:
    """What goes through a generator, in the order of the text: optimizers, loops, and functions such as `list`."""
    optimizers = script.updates.optimizers
    users: list[tuple[ast.AST, ast.AST]] = []
    for tree in script.trees:
        users += [
            (c, a) for c in tree.called(*_GOING_THROUGH) if isinstance(c.func, ast.Name) for a in c.args[:1]
        ]
        for node in ast.walk(tree.root):
            if isinstance(node, ast.For | ast.comprehension):
                users.append((node.iter, node.iter))
    users += [
        (o, a) for o in optimizers for a in (*o.args[:1], *(k.value for k in o.keywords if k.arg == "params"))
    ]
    reads = [(user, given) for user, given in users if isinstance(given, ast.Name | ast.Attribute)]
    yield from sorted((user for user, given in reads if _kept(script, given) is kept), key=start)


def _again(script: Script, loop: ast.For, kept: ast.expr) -> bool:
    """Whether a loop is run in rounds, and the generator was made before them."""
    return script.training.repeated(loop) and not script.training.repeated(kept)


def _as_list(script: Script, kept: ast.expr) -> Fix | None:
    edits = Edits(script)
    edits.replace(kept, f"list({edits.text(kept)})")
    return edits.fix("Keeps the parameters in a list, which can be gone through again.")
