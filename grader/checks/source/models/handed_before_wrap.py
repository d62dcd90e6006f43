"""Where a network is handed to what trains it before it is wrapped: a closure or an object then keeps the bare one."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.calls.sites import CallSite
from grader.checks.source.ranks.written_ranks import held_name
from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax.nodes import FUNCTIONS, VARIABLES, end, start
from grader.model.call_site import Site

_MAX_DEPTH = 4


def handed_before_wrap(script: Script, called: Site | None) -> tuple[ast.Call, str] | None:
    """The call that hands on what is called at a place, above the wrap of the same network; and what to write."""
    if called is None:
        return None
    for tree in script.trees:
        for call in tree.calls if tree.path == called.path else ():
            if call.lineno != called.line or not isinstance(call.func, VARIABLES):
                continue
            for site, given in _handed(script, call.func, 0):
                for wrap in script.training.wraps:
                    told = _moved_below(script, site, given, wrap)
                    if told:
                        return site.call, told
    return None


def _handed(script: Script, node: ast.expr, depth: int) -> Iterable[tuple[CallSite, ast.expr]]:
    """Calls by which a value came in as an argument, also by way of an attribute, innermost first."""
    if depth >= _MAX_DEPTH:
        return
    stored: list[ast.expr] = [node]
    if isinstance(node, ast.Attribute):
        stored = [
            d.value for t in script.trees for d in t.attributes.get(node.attr, ()) if d.value is not None
        ]
    for value in stored:
        for definition in script.scopes.reaching(value.id, value) if isinstance(value, ast.Name) else ():
            parameter = definition.node
            above = script.names.tree(parameter).parent
            function = above.get(above.get(parameter, parameter)) if isinstance(parameter, ast.arg) else None
            if not isinstance(parameter, ast.arg) or not isinstance(function, FUNCTIONS):
                continue
            for site in script.graph.sites(function):
                given = script.graph.bound(site, function, parameter.arg)
                if isinstance(given, ast.expr) and given is not UNKNOWN:
                    # What a function does with its own argument is over when it returns.
                    if (
                        isinstance(node, ast.Attribute)
                        or script.names.tree(value).function(value) is not function
                    ):
                        yield site, given
                    yield from _handed(script, given, depth + 1)


def _moved_below(script: Script, site: CallSite, given: ast.expr, wrap: ast.Call) -> str:
    """What to write where a call stands above the wrap of what it hands on, and its result is used below; else ""."""
    tree = script.names.tree(wrap)
    module = script.argument(wrap, "module")
    made, wrapping = tree.statement(site.call), tree.statement(wrap)
    if script.names.tree(site.call) is not tree or tree.function(site.call) is not tree.function(wrap):
        return ""
    if not isinstance(module, ast.expr) or module is UNKNOWN or start(wrap) < end(site.call):
        return ""
    same = set(script.values.origins(module, returns=False)) & set(
        script.values.origins(given, returns=False)
    )
    if not same or not isinstance(made, ast.Assign) or not isinstance(wrapping, ast.Assign):
        return ""
    target = wrapping.targets[0]
    name = held_name(script, wrap, wrapping) or (target.id if isinstance(target, ast.Name) else "")
    if not name:
        return ""
    text = f"give it `{name}` in place of `{ast.unparse(given)}`"
    moved = f"Move {script.quote(made)} from {script.at(made)} below the wrapper at {script.at(wrap)}"
    return (
        f"{moved}, and {text}." if ast.unparse(given) != name else f"{moved}: `{name}` is the wrapper there."
    )
