"""Forward passes through the DistributedDataParallel wrapper that only some ranks make.

Follows a called network up through parameters, helpers and methods to the place where a rank test keeps ranks away. A
network that may have been unwrapped on the way, and a branch that makes the other ranks come too, clear it.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from grader.checks.source.calls.ways import ways_to
from grader.checks.source.ranks.rank_guards import Guard
from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax.nodes import FUNCTIONS, LOOPS, ancestors

_MAX_DEPTH = 5
_REPEATS = (*LOOPS, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)


@dataclass(frozen=True, slots=True)
class PartialForward:
    """How a forward pass is reached.

    Attributes:
        guard: the rank test. steps: the calls from the guarded one down to the forward pass.
        network: the expression that is the wrapped model where the guard stands.
    """

    guard: Guard
    steps: tuple[ast.Call, ...]
    network: ast.expr


def partial_forward(script: Script, call: ast.Call) -> PartialForward | None:
    """How a call that runs the wrapped model is reached by some ranks only; None where all come, or nobody can tell."""
    network = script.networks.callee(call)
    if network is None or not _kept_from_some(script, call) or not script.networks.is_network(network):
        return None
    if _in_training(script, call) or script.guards.alone(call):
        return None
    return _guarded(script, call, network, (call,), 0)


def _kept_from_some(script: Script, node: ast.Call) -> bool:
    """Whether a rank test stands anywhere on the ways to a call; most calls have none and are done with."""
    ways = ways_to(script.names, script.graph, node, most=_MAX_DEPTH)
    guards = (script.guards.partial(place) for place in ways)
    return any(guard is not None and guard.condition.sure for guard in guards)


def _guarded(
    script: Script, node: ast.Call, network: ast.expr, steps: tuple[ast.Call, ...], depth: int
) -> PartialForward | None:
    """The rank test on the way to a forward pass, where what is called there is the wrapped model."""
    guard = script.guards.partial(node)
    if guard is not None and guard.condition.sure and _wrapped(script, network):
        return None if _others_come_too(script, node, guard) else PartialForward(guard, steps, network)
    function = script.names.tree(node).function(node)
    if function is None or depth >= _MAX_DEPTH:
        return None
    parameter = _parameter(script, network, function)
    for site in script.graph.sites(function):
        if site.call in steps:
            continue
        given = script.graph.bound(site, function, parameter) if parameter else network
        if given is None or given is UNKNOWN or given is site.call:
            continue
        found = _guarded(script, site.call, given, (site.call, *steps), depth + 1)
        if found is not None:
            return found
    return None


def _wrapped(script: Script, network: ast.expr) -> bool:
    """Whether a network surely is the wrapper: some way in which it may have been unwrapped clears it."""
    origins = script.values.origins(network)
    unwrapped = any(isinstance(o, ast.Attribute) and o.attr == "module" for o in origins)
    return not unwrapped and any(o in script.training.wraps for o in origins)


def _parameter(script: Script, network: ast.expr, function: ast.AST) -> str:
    """The parameter of this function that a network came in by, "" where it came another way."""
    if not isinstance(network, ast.Name) or not isinstance(function, FUNCTIONS):
        return ""
    found = script.scopes.reaching(network.id, network)
    is_parameter = found and all(d.kind == "parameter" for d in found)
    return network.id if is_parameter else ""


def _others_come_too(script: Script, node: ast.Call, guard: Guard) -> bool:
    """Whether the other branch of the rank test runs the wrapped model as well, or the same helper."""
    tree = script.names.tree(node)
    branch = tree.parent.get(guard.test)
    if not isinstance(branch, ast.If):
        return False
    here = branch.body if any(tree.inside(node, s) for s in branch.body) else branch.orelse
    there = branch.orelse if here is branch.body else branch.body
    same = set(script.graph.targets(node))
    for statement in there:
        for call in tree.calls_within(statement):
            network = script.networks.called(call)
            if (network is not None and _wrapped(script, network)) or same & set(script.graph.targets(call)):
                return True
    return False


def _in_training(script: Script, call: ast.Call) -> bool:
    """Whether the loop or function around a forward pass also runs `backward`: then it is no evaluation."""
    if script.training.gradients_off(call):
        return False
    tree = script.names.tree(call)
    for above in (call, *ancestors(tree.parent, call, (ast.Module,))):
        tested = isinstance(above, ast.If) and script.conditions.of(above.test).partial
        if tested or isinstance(above, (*_REPEATS, *FUNCTIONS)):
            return script.training.runs_backward(above)
    return False
