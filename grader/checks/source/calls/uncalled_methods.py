"""Statements that only name a method, `optimizer.zero_grad` without parentheses: they do nothing, and raise nothing."""

from __future__ import annotations

import ast

from grader.checks.source.ranks.rank_guards import Guard
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import start

MEETINGS = ("barrier", "monitored_barrier", "wait_for_everyone")
"""Methods that let all ranks wait for each other."""


def uncalled(script: Script, method: str) -> list[ast.Attribute]:
    """The statements that name a method of this name and don't call it."""
    return [
        node
        for tree in script.trees
        for node in tree.attribute_loads.get(method, ())
        if isinstance(tree.parent.get(node), ast.Expr)
    ]


def uncalled_between(script: Script, first: ast.AST, last: ast.AST) -> list[ast.Attribute]:
    """The meetings that are only named between two places of one file."""
    tree = script.names.tree(first)
    named = [one for method in MEETINGS for one in uncalled(script, method)]
    return [n for n in named if script.names.tree(n) is tree and start(first) < start(n) < start(last)]


def parentheses(script: Script, named: ast.Attribute) -> str:
    """What to write instead of such a statement."""
    text = ast.unparse(named)
    return f"Write `{text}()` at {script.at(named)}: without the parentheses `{text}` names it and calls nothing."


def meeting(script: Script, named: ast.Attribute) -> str:
    """The same of a barrier: where the others meet it nowhere, to call it where it stands would wait for ever."""
    guard = _unmet(script, named)
    if guard is None:
        return parentheses(script, named)
    return (
        f"Move it out of {script.quote(guard.test)} at {script.at(guard.test)}, to where every rank comes by, and "
        f"write `{ast.unparse(named)}()`: called by some ranks alone, it waits for ever."
    )


def _unmet(script: Script, named: ast.Attribute) -> Guard | None:
    """The rank test that a barrier stands under, where the next one before or behind it is not for the other ranks."""
    guard = script.guards.partial(named)
    if guard is None:
        return None
    tree = script.names.tree(named)
    called = (call.func for call in tree.called(named.attr))
    all_of_them = sorted(
        {*called, *uncalled(script, named.attr)} & set(tree.attribute_loads[named.attr]), key=start
    )
    beside = [one for one in all_of_them if tree.scope(one) is tree.scope(named)]
    number = beside.index(named)
    theirs = (
        script.guards.partial(one)
        for one in (*beside[max(0, number - 1) : number], *beside[number + 1 :][:1])
    )
    opposite = guard.condition.negated().which
    return None if any(g is not None and g.condition.which is opposite for g in theirs) else guard
