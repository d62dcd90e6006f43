"""How the rank of a process can be written at a line: by a name that the script has there, or by asking the group.

Claims only what is sure: a name that holds the rank on every path, and a group only where `joined_groups` sees one.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from grader.checks.source.collectives.collective_calls import INIT
from grader.checks.source.collectives.joined_groups import in_group, may_be_alone
from grader.checks.source.ranks.rank_expressions import Strength
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import FUNCTIONS, Definition, literal, start

_NUMBERS = ("int", "torch.distributed.get_rank", "torch.distributed.get_node_local_rank")


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
    """The rank among the processes of one machine, as it can be written at a line; else the edits are given up.

    Where the script also runs as one process, which a launcher tells nothing, it is 0 there.
    """
    known = _variable(script, at, _is_local)
    if known:
        return known
    if script.graph.spawn_sites:
        edits.give_up()
    variables = edits.name("os.environ", at)
    alone = may_be_alone(script, at)
    return f'int({variables}.get("LOCAL_RANK", 0))' if alone else f'int({variables}["LOCAL_RANK"])'


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


def _variable(script: Script, at: ast.AST, is_meant: Callable[[Script, ast.Name], bool]) -> str:
    """A plain name that holds what is meant at a line, "" where there is none."""
    tree, alone = script.names.tree(at), may_be_alone(script, at)
    for name, loads in tree.loads.items():
        meant = script.names.lookup(name, at)
        if len(meant) != 1 or not _bound_before(script, meant[0], at):
            continue
        same = [n for n in loads if script.names.lookup(name, n) is meant]
        if same and all(is_meant(script, n) and (_is_first_alone(script, n) or not alone) for n in same):
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


def _is_first_alone(script: Script, node: ast.Name) -> bool:
    """Whether a name does not hold -1 where there is no launcher: no GPU has that number, and rank 0 is another."""
    parts = (literal(n) for n in script.values.closure(node))
    return not any(isinstance(p, int) and p < 0 for p in parts)


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
