"""Where a script switches a network into evaluation mode, and whether that lies on the way to a loop.

Any switch on the way counts, of whichever network: a rule that asks prefers silence.
"""

from __future__ import annotations

import ast

from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax.nodes import FUNCTIONS, WITHS, Function, Loop, ancestors, name_of

_MAX_DEPTH = 6


def switches_mode(script: Script, call: ast.Call) -> bool:
    """`model.eval()`, `model.train(False)`, `model.train(mode)`, and whatever else is called by such a name."""
    name = name_of(call)
    if isinstance(call.func, ast.Attribute) and name == "eval":
        return not call.args
    if isinstance(call.func, ast.Attribute) and name == "train" and (call.args or call.keywords):
        if script.graph.targets(call):
            return False  # a trainer's own method
        mode = script.values.constant(call.args[0] if call.args else call.keywords[0].value)
        return mode is False or mode is UNKNOWN
    return named_so(name)


def mode_switches(script: Script) -> list[ast.Call]:
    """All such calls, in the order of the text."""
    likely = script.called_like(lambda name: name in ("eval", "train") or named_so(name))
    return [call for call in likely if switches_mode(script, call)]


def named_so(name: str) -> bool:
    """Whether a function of the script's own is called after switching modes."""
    words = name.lower()
    return "eval_mode" in words or "set_eval" in words or "to_eval" in words or "switch_mode" in words


def callers(script: Script, loop: Loop) -> list[tuple[Function | None, ast.Call]]:
    """All calls that lead to a loop, each with the function it stands in."""
    found: list[tuple[Function | None, ast.Call]] = []
    work: list[tuple[ast.AST | None, int]] = [(script.names.tree(loop).function(loop), 0)]
    seen: set[ast.AST] = set()
    while work:
        function, depth = work.pop()
        if function is None or function in seen or depth > _MAX_DEPTH:
            continue
        seen.add(function)
        for site in script.graph.sites(function):
            above = script.names.tree(site.call).function(site.call)
            found.append((above, site.call))
            work.append((above, depth + 1))
    return found


def reaches(script: Script, switch: ast.Call, loop: Loop, around: set[Function | None]) -> bool:
    """Whether a switch stands in a function on the way to the loop, or in one that such a function calls."""
    tree = script.names.tree(switch)
    function = tree.function(switch)
    if function is None:
        return None in around
    if function in around:
        return True
    sites = script.graph.sites(function)
    inner = any(script.names.tree(s.call).function(s.call) in around for s in sites)
    # Context managers and decorators (`with evaluating(model):`) run their function around the loop.
    return inner or any(_runs_around(script, mention, loop) for mention in script.graph.references(function))


def _runs_around(script: Script, mention: ast.AST, loop: Loop) -> bool:
    tree = script.names.tree(mention)
    for above in (mention, *ancestors(tree.parent, mention)):
        if isinstance(above, (*WITHS, *FUNCTIONS)):
            return tree is script.names.tree(loop) and tree.inside(loop, above)
    return False
