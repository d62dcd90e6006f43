"""Functions of modules that were not handed in: where the script calls them, and whether they may set the run up.

A helper out of sight may start the group, silence `print` or reduce a metric. Which of these it can do shows in how
it is called: what builds a network or reads data replaces no `print`. Nothing here guesses what a helper does do.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from grader.checks.source.calls.arguments import arguments_of
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import FUNCTIONS, Loop, loop_above, name_of, walk

_SETS_UP = re.compile(
    r"dist|ddp|set_?up|init|launch|spawn|rank|process|world|parallel|worker|prepare|print|log|main|master|run|device|env",
    re.IGNORECASE,
)
_FORMS_GROUP = re.compile(
    r"dist|ddp|init|launch|spawn|parallel|process|device|state|argument|fabric|strategy", re.IGNORECASE
)


def calls_into_missing_modules(script: Script) -> list[ast.Call]:
    """Calls of functions and classes that were imported from such modules, in the order of the text."""
    return (
        [c for c in script.all_calls() if is_from_missing_module(script, c.func)]
        if script.names.foreign
        else []
    )


def is_from_missing_module(script: Script, node: ast.AST) -> bool:
    """Whether an expression names something of such a module."""
    return _is_from(script.names.foreign, script.names.qualified(node))


def may_set_up(script: Script) -> bool:
    """Whether one of them may set the run up: it is called so, by itself before any loop, or around own code."""
    if not script.names.foreign:
        return False
    for tree in script.trees:
        if any(f == s or f.startswith(f"{s}.") for s in tree.stars for f in script.names.foreign):
            return True
        around = [b for c in tree.classes for b in c.bases]
        around += [d for n in tree.parent if isinstance(n, FUNCTIONS) for d in n.decorator_list]
        around += [i.context_expr for w in tree.withs for i in w.items]
        if any(is_from_missing_module(script, a.func if isinstance(a, ast.Call) else a) for a in around):
            return True
    return any(_sets_up(script, c) for c in calls_into_missing_modules(script))


def may_form_group(script: Script) -> bool:
    """Whether a library may have joined the ranks: something of it is called that sounds like it.

    `timm.utils.init_distributed_device(args)` does, and the arguments of a training with transformers.
    """
    return script.may_hide_setup or any(
        _FORMS_GROUP.search(name_of(c)) and _is_from(script.names.able, script.names.qualified(c.func))
        for c in (script.all_calls() if script.names.able else ())
    )


def may_reduce(script: Script, loop: Loop, counted: set[str]) -> bool:
    """Whether one of them may bring the ranks' counts of a loop together: it built the counter, or gets the counts."""
    tree = script.names.tree(loop)
    calls = calls_into_missing_modules(script)
    if not calls:
        return False
    counting = [n for name in counted for n in tree.loads.get(name, ()) if tree.inside(n, loop)]
    if any(o in calls for n in counting for o in script.values.origins(n)):
        return True
    inside = {n for s in loop.body for n in walk(s) if isinstance(n, ast.expr | ast.stmt)}
    parts = [p for c in calls if not tree.inside(c, loop) for p in arguments_of(c)]
    return any(not inside.isdisjoint(script.values.closure(p)) for p in parts)


def _sets_up(script: Script, call: ast.Call) -> bool:
    if _SETS_UP.search(name_of(call)):
        return True
    tree = script.names.tree(call)
    if any(script.graph.definition(a) is not None for a in arguments_of(call)):
        return True
    alone = isinstance(tree.parent.get(call), ast.Expr)
    return alone and loop_above(tree.parent, call, FUNCTIONS) is None


def _is_from(modules: Iterable[str], name: str | None) -> bool:
    return name is not None and any(name == m or name.startswith(f"{m}.") for m in modules)
