"""Reads of properties, written into the tree as the calls that they are.

`meter.avg` runs the method that its class calls `avg`, collectives and all. With the call in the tree, nobody who
follows calls has to know of properties. Those that run nothing themselves stay attributes.
"""

from __future__ import annotations

import ast

from grader.checks.source.call_sites import Calls
from grader.checks.source.decorators import is_property
from grader.checks.source.library_names import Names
from grader.checks.source.reaching_assignments import Scopes
from grader.checks.source.syntax_nodes import PropertyRead, fields_of
from grader.checks.source.syntax_tree import Tree
from grader.checks.source.value_sources import Values


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
    names = Names(trees)
    scopes = Scopes(names)
    calls = Calls(trees, names, scopes)
    values = Values(trees, names, scopes, calls)
    found = [node for node in likely if _reads_property(node, names, calls, values)]
    for node in found:
        _call_it(names.tree(node).parent[node], node)
    return tuple(Tree(tree.path, tree.text, tree.root) for tree in trees) if found else trees


def _reads_property(node: ast.Attribute, names: Names, calls: Calls, values: Values) -> bool:
    """Whether every object that stands before the dot has a property of that name which runs something."""
    known = calls.owner(node.value)
    owners = [known] if known else [calls.built_class(o) for o in values.origins(node.value)]
    methods = [calls.method(owner, node.attr) if owner is not None else None for owner in owners]
    return all(m is not None and is_property(m) and bool(names.tree(m).calls_within(m)) for m in methods)


def _call_it(above: ast.AST, node: ast.Attribute) -> None:
    call = ast.copy_location(PropertyRead(func=node, args=[], keywords=[]), node)
    for field in fields_of(above.__class__):
        value = getattr(above, field)
        if value is node:
            setattr(above, field, call)
        elif isinstance(value, list):
            value[:] = [call if item is node else item for item in value]
