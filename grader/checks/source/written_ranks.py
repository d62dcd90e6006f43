"""How the rank of a process can be written at a line: by a name that the script has there, or by asking the group.

Claims only what is sure: a group that every path to the line has joined, a name that holds the rank on every path.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from grader.checks.source.collectives import INIT
from grader.checks.source.edits import Edits
from grader.checks.source.ranks import Strength
from grader.checks.source.reaching_assignments import is_main_block
from grader.checks.source.script import Script
from grader.checks.source.syntax_nodes import FUNCTIONS, Definition, end, start

_END = "torch.distributed.destroy_process_group"
_NUMBERS = ("int", "torch.distributed.get_rank", "torch.distributed.get_node_local_rank")
_MAX_DEPTH = 5
_CONDITIONS = (
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


def main_rank_test(script: Script, edits: Edits, at: ast.AST) -> str:
    """A test that holds at a line on rank 0 alone; the edits are given up where none can be written for certain."""
    if test := script.owners.main_test(at):
        return test
    words = script.frameworks.spoken
    held = next((n for made in script.frameworks.objects if (n := held_name(script, made, at))), "")
    if words is not None and held:
        return f"{held}.{words.main}"
    return f"{global_rank(script, edits, at)} == 0"


def global_rank(script: Script, edits: Edits, at: ast.AST) -> str:
    """The rank among all processes, as it can be written at a line; else the edits are given up."""
    known = _variable(script, at, _is_global)
    if known:
        return known
    if not in_group(script, at):
        edits.give_up()
    return f"{edits.name('torch.distributed.get_rank', at)}()"


def local_rank(script: Script, edits: Edits, at: ast.AST) -> str:
    """The rank among the processes of one machine, as it can be written at a line; else the edits are given up."""
    known = _variable(script, at, _is_local)
    if known:
        return known
    if script.graph.spawn_sites():
        edits.give_up()
    return f'int({edits.name("os.environ", at)}["LOCAL_RANK"])'


def in_group(script: Script, at: ast.AST, depth: int = 0) -> bool:
    """Whether every rank that comes to a line has joined the process group and not left it yet."""
    tree = script.names.tree(at)
    function = tree.function(at)
    within = tree.calls_within(function) if function is not None else tree.calls
    before = [c for c in within if tree.function(c) is function and end(c) <= start(at)]
    started = [c for c in before if _starts(script, c, at)]
    if started:
        latest = max(started, key=start)
        return not any(start(c) > start(latest) and _leads_to(script, c, _END) for c in before)
    if function is None or depth >= _MAX_DEPTH or any(_leads_to(script, c, _END) for c in before):
        return False
    sites = script.graph.sites(function)
    return bool(sites) and all(not s.spawned and in_group(script, s.call, depth + 1) for s in sites)


def held_name(script: Script, made: ast.Call, at: ast.AST) -> str:
    """A plain name that holds what a call made, and nothing else, at a later line; "" where there is none."""
    tree = script.names.tree(at)
    statement = tree.parent.get(made)
    if not isinstance(statement, ast.Assign) or script.names.tree(made) is not tree:
        return ""
    for target in statement.targets:
        meant = script.names.lookup(target.id, at) if isinstance(target, ast.Name) else []
        only = len(meant) == 1 and meant[0].value is made and not meant[0].path
        if isinstance(target, ast.Name) and only and _bound_before(script, meant[0], at):
            return target.id
    return ""


def _starts(script: Script, call: ast.Call, at: ast.AST, depth: int = 0) -> bool:
    """Whether a call has surely started the group where `at` is reached: itself, or a function that it calls."""
    tree = script.names.tree(call)
    above = tree.parent.get(call)
    while above is not None and above is not tree.function(call):
        perhaps = isinstance(above, _CONDITIONS) and not is_main_block(above)
        if perhaps and not (script.names.tree(at) is tree and tree.inside(at, above)):
            return False
        above = tree.parent.get(above)
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


def _leads_to(script: Script, call: ast.Call, dotted: str, depth: int = 0) -> bool:
    if script.names.qualified(call.func) == dotted:
        return True
    targets = script.graph.targets(call) if depth < _MAX_DEPTH else ()
    return any(
        _leads_to(script, c, dotted, depth + 1)
        for t in targets
        if isinstance(t, FUNCTIONS)
        for c in script.names.tree(t).calls_within(t)
    )


def _variable(script: Script, at: ast.AST, is_meant: Callable[[Script, ast.Name], bool]) -> str:
    """A plain name that holds what is meant at a line, "" where there is none."""
    tree = script.names.tree(at)
    for name, loads in tree.loads.items():
        meant = script.names.lookup(name, at)
        if len(meant) != 1 or not _bound_before(script, meant[0], at):
            continue
        same = [n for n in loads if script.names.lookup(name, n) is meant]
        if same and all(is_meant(script, n) for n in same):
            return name
    return ""


def _is_global(script: Script, node: ast.Name) -> bool:
    """Whether a name holds the rank as the group counts it: by where it comes from, or as it was started with."""
    if script.ranks.kind(node) == "global" and _is_number(script, node):
        return True
    given = [script.argument(c, "rank") for c in script.calls(INIT)]
    same = [g for g in given if isinstance(g, ast.Name) and g.id == node.id]
    lookup = script.names.lookup
    return script.ranks.rank(node) is Strength.SURE and any(
        lookup(g.id, g) is lookup(node.id, node)
        for g in same
        if script.names.tree(g) is script.names.tree(node)
    )


def _is_local(script: Script, node: ast.Name) -> bool:
    return script.ranks.kind(node) == "local" and _is_number(script, node)


def _is_number(script: Script, node: ast.Name) -> bool:
    """`dist.get_rank()` or `int(…)`; what the environment holds is a text."""
    origins = script.values.origins(node)
    return all(isinstance(o, ast.Call) and script.names.qualified(o.func) in _NUMBERS for o in origins)


def _bound_before(script: Script, definition: Definition, at: ast.AST) -> bool:
    """Whether a name is surely bound where a line runs."""
    if definition.kind == "parameter":
        return True
    tree = script.names.tree(at)
    above = tree.parent.get(definition.node)
    if definition.kind != "assign" or not isinstance(above, ast.AST):
        return False
    if not (isinstance(above, (ast.Module, *FUNCTIONS)) or tree.inside(at, above)):
        return False
    return tree.function(definition.node) is not tree.function(at) or definition.since <= start(at)
