"""Where a script switches a network into evaluation mode, and whether that lies on the way to a loop.

Any switch on the way counts, of whichever network: a rule that asks prefers silence.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax_nodes import FUNCTIONS, LOOPS, WITHS, Function, Loop, end, name_of, start
from grader.checks.source.syntax_tree import Tree

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
    return _named_so(name)


def mode_switches(script: Script) -> list[ast.Call]:
    """All such calls, in the order of the text."""
    likely = script.called_like(lambda name: name in ("eval", "train") or _named_so(name))
    return [call for call in likely if switches_mode(script, call)]


def never_left(script: Script, switches: list[ast.Call]) -> Iterable[tuple[ast.Call, Loop]]:
    """Calls of `eval` after a training loop, in the loop that brings the next one, with no way back; with the first."""
    lost = [s for s in switches if isinstance(s.func, ast.Attribute) and s.func.attr == "eval"]
    if not lost or script.called_like(_named_so) or script.training.framework:
        return
    back = [c for c in script.called("train") if isinstance(c.func, ast.Attribute) and c not in switches]
    for draw in script.training.draws:
        if not draw.trains:
            continue
        tree = script.names.tree(draw.loop)
        around = _loop_around(tree, draw.loop)
        # Called before all epochs it brings nothing back; anywhere else it may.
        helps = [c for c in back if around is None or not _before(script, c, around)]
        if around is None or helps:
            continue
        for switch in lost:
            function = script.names.tree(switch).function(switch)
            sites = script.graph.sites(function) if function is not None else []
            run = [c for c in (switch, *(s.call for s in sites)) if script.names.tree(c) is tree]
            after = any(start(c) > end(draw.loop) and tree.inside(c, around) for c in run)
            if after and _of_trained(script, switch, draw.loop):
                yield switch, draw.loop


def _loop_around(tree: Tree, node: ast.AST) -> Loop | None:
    above = tree.parent.get(node)
    while above is not None and not isinstance(above, (*LOOPS, *FUNCTIONS)):
        above = tree.parent.get(above)
    return above if isinstance(above, LOOPS) else None


def _before(script: Script, call: ast.Call, loop: Loop) -> bool:
    tree = script.names.tree(call)
    beside = tree is script.names.tree(loop) and tree.scope(call) is tree.scope(loop)
    return beside and start(call) < start(loop)


def _of_trained(script: Script, switch: ast.Call, loop: Loop) -> bool:
    """Whether `eval` is called of the network that a loop trains, or of what a wrapper holds."""
    owner = switch.func.value if isinstance(switch.func, ast.Attribute) else switch
    calls = script.names.tree(loop).calls_within(loop)
    trained = [network for call in calls if (network := script.networks.called(call)) is not None]
    meant = set(script.values.origins(_held(owner)))
    return any(not meant.isdisjoint(script.values.origins(_held(network))) for network in trained)


def _held(network: ast.expr) -> ast.expr:
    inner = isinstance(network, ast.Attribute) and network.attr == "module"
    return network.value if inner and isinstance(network, ast.Attribute) else network


def _named_so(name: str) -> bool:
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
    above: ast.AST | None = mention
    while above is not None:
        if isinstance(above, (*WITHS, *FUNCTIONS)):
            return tree is script.names.tree(loop) and tree.inside(loop, above)
        above = tree.parent.get(above)
    return False
