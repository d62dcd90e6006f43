"""Whether a line runs in a process group: one that every path to it has joined, or one that may be lacking there.

A script that is also started as one process forms its group under a test, and no collective may stand outside of it.
"""

from __future__ import annotations

import ast

from grader.checks.source.collectives.collective_calls import INIT
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import FUNCTIONS, ancestors, end, start
from grader.checks.source.values.reaching_assignments import is_main_block

_END = "torch.distributed.destroy_process_group"
_NEEDING = tuple(
    f"torch.distributed.{name}" for name in ("all_", "barrier", "broadcast", "destroy_", "get_", "reduce")
)
_MAX_DEPTH = 5
CONDITIONS = (
    ast.If,
    ast.IfExp,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.Try,
    ast.BoolOp,
    ast.Lambda,
    ast.Match,
)
"""What may pass over a call that stands in it."""


def runs_alone(script: Script) -> bool:
    """Whether a script forms its group only where it is distributed, and goes on without one where it isn't."""
    starts = script.calls(INIT)
    return bool(starts) and all(script.guards.among_others(c) for c in starts)


def in_group(script: Script, at: ast.AST, depth: int = 0) -> bool:
    """Whether every rank that comes to a line has joined the process group and not left it yet."""
    tree = script.names.tree(at)
    function = tree.function(at)
    within = tree.calls_within(function) if function is not None else tree.calls
    before = [c for c in within if tree.function(c) is function and end(c) <= start(at)]
    started = [c for c in before if _starts(script, c, at)]
    if started:
        latest = max(started, key=start)
        return not any(start(c) > start(latest) and leads_to(script, c, _END) for c in before)
    if function is None or depth >= _MAX_DEPTH or any(leads_to(script, c, _END) for c in before):
        return False
    sites = script.graph.sites(function)
    return bool(sites) and all(not s.spawned and in_group(script, s.call, depth + 1) for s in sites)


def may_be_alone(script: Script, at: ast.AST) -> bool:
    """Whether a line also runs in a process without others, as far as the tests around it tell."""
    return runs_alone(script) and not (in_group(script, at) or script.guards.among_others(at))


def may_lack_group(script: Script, dotted: str, at: ast.AST) -> bool:
    """Whether a function may be called at a line where there is no group, and raises there."""
    return dotted.startswith(_NEEDING) and may_be_alone(script, at)


def _starts(script: Script, call: ast.Call, at: ast.AST, depth: int = 0) -> bool:
    """Whether a call has surely started the group where `at` is reached: itself, or a function that it calls."""
    tree = script.names.tree(call)
    for above in ancestors(tree.parent, call, tree.function(call)):
        perhaps = isinstance(above, CONDITIONS) and not is_main_block(above)
        if perhaps and not (script.names.tree(at) is tree and tree.inside(at, above)):
            return False
    if script.names.qualified(call.func) == INIT:
        return True
    targets = [t for t in script.graph.targets(call) if isinstance(t, FUNCTIONS)]
    if len(targets) != 1 or depth >= _MAX_DEPTH:
        return False
    inner = script.names.tree(targets[0])
    inside = [c for c in inner.calls_within(targets[0]) if inner.function(c) is targets[0]]
    leaves = inner.returns.get(targets[0], [])
    return any(
        _starts(script, c, c, depth + 1)
        and _plainly(script, c)
        and not any(start(r) < start(c) for r in leaves)
        for c in inside
    )


def _plainly(script: Script, call: ast.Call) -> bool:
    """Whether a call stands right in the body of its function, under no condition."""
    tree = script.names.tree(call)
    return tree.parent.get(tree.statement(call)) is tree.function(call)


def leads_to(script: Script, call: ast.Call, dotted: str, depth: int = 0) -> bool:
    """Whether a call is that of a library's function, or may come to one inside the functions that it calls."""
    if script.names.qualified(call.func) == dotted:
        return True
    targets = script.graph.targets(call) if depth < _MAX_DEPTH else ()
    return any(
        leads_to(script, c, dotted, depth + 1)
        for t in targets
        if isinstance(t, FUNCTIONS)
        for c in script.names.tree(t).calls_within(t)
    )
