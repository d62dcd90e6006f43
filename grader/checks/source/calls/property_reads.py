"""Functions that run without a call in the text, written into the tree as the calls that they are.

`meter.avg` runs the method that its class calls `avg`, collectives and all, and `f"{meter}"` its `__str__`; `map` runs
what it is given. With the call in the tree, nobody who follows calls has to know of any. What runs nothing itself stays
as it is written.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.calls.decorators import is_property
from grader.checks.source.calls.handed_functions import handed_functions, may_hand
from grader.checks.source.calls.implied_calls import Implied, Objects, implied_calls, methods_of_handed_on
from grader.checks.source.calls.sites import Calls
from grader.checks.source.libraries.names import Names
from grader.checks.source.syntax.nodes import Function, ImpliedCall, PropertyRead, fields_of
from grader.checks.source.syntax.tree import Tree
from grader.checks.source.values.reaching_assignments import Scopes
from grader.checks.source.values.sources import Values


def properties_called(trees: tuple[Tree, ...]) -> tuple[Tree, ...]:
    """The same files with a call for each read of a property; their old trees are of no use then."""
    running = {
        f.name
        for tree in trees
        for f in tree.functions
        if isinstance(tree.parent[f], ast.ClassDef) and is_property(f) and tree.calls_within(f)
    }
    likely = [node for tree in trees for name in running for node in tree.attribute_loads.get(name, ())]
    if not likely:
        return trees
    names, calls, values = _read(trees)
    objects = Objects(names, calls, values)
    found = ((node, _run_by(node, names, calls, objects)) for node in likely)
    return _with(trees, names, ((node, PropertyRead(node, [], []), run) for node, run in found if run))


def handed_called(trees: tuple[Tree, ...]) -> tuple[Tree, ...]:
    """The same with a call of each function that is handed to what calls it at once; nobody knows with what."""
    if not any(map(may_hand, trees)):
        return trees
    names, calls, values = _read(trees)
    found = list(handed_functions(trees, names, calls, values))
    return _with(trees, names, ((node, _call_of(node), (function,)) for node, function in found))


def _call_of(function: ast.expr) -> ImpliedCall:
    called = ast.Attribute(value=function, attr="__call__", ctx=ast.Load())
    unknown = ast.copy_location(ast.Dict(keys=[], values=[]), function)
    return ImpliedCall(ast.copy_location(called, function), [], [ast.keyword(arg=None, value=unknown)])


def meetings_called(trees: tuple[Tree, ...]) -> tuple[Tree, ...]:
    """The same with a call wherever Python runs a special method in which ranks may meet, properties being called.

    Calls of other methods in which they may, of objects that were handed on, then know what they run.
    """
    if not any(isinstance(tree.parent[f], ast.ClassDef) for tree in trees for f in tree.functions):
        return trees
    names, calls, values = _read(trees)
    for call, run in methods_of_handed_on(trees, names, calls, values):
        call.runs = run  # type: ignore[attr-defined]
    found = list(implied_calls(trees, names, calls, values))
    return _with(trees, names, ((one.node, ImpliedCall(_method(one), [], []), one.methods) for one in found))


def _method(implied: Implied) -> ast.Attribute:
    asked = ast.Attribute(value=implied.node, attr=implied.methods[0].name, ctx=ast.Load())
    return ast.copy_location(asked, implied.node)


def _read(trees: tuple[Tree, ...]) -> tuple[Names, Calls, Values]:
    names = Names(trees)
    scopes = Scopes(names)
    calls = Calls(trees, names, scopes)
    return names, calls, Values(trees, names, scopes, calls)


def _run_by(node: ast.Attribute, names: Names, calls: Calls, objects: Objects) -> tuple[Function, ...]:
    """The methods that reading an attribute runs, where every object before the dot has it as a property with calls."""
    owners = objects.classes(node.value)
    methods = [calls.method(owner, node.attr) if owner is not None else None for owner in owners]
    run = [m for m in methods if m is not None and is_property(m) and names.tree(m).calls_within(m)]
    return tuple(dict.fromkeys(run)) if len(run) == len(methods) else ()


def _with(
    trees: tuple[Tree, ...],
    names: Names,
    made: Iterable[tuple[ast.expr, PropertyRead | ImpliedCall, tuple[Function, ...]]],
) -> tuple[Tree, ...]:
    """The files with calls in the place of expressions, which run these methods."""
    found = list(made)
    for node, call, run in found:
        call.runs = run
        _put(names.tree(node).parent[node], node, ast.copy_location(call, node))
    return tuple(Tree(tree.path, tree.text, tree.root) for tree in trees) if found else trees


def _put(above: ast.AST, node: ast.expr, call: ast.Call) -> None:
    for field in fields_of(above.__class__):
        value = getattr(above, field)
        if value is node:
            setattr(above, field, call)
        elif isinstance(value, list):
            value[:] = [call if item is node else item for item in value]
