"""Statements that one rank alone should run, put under a test of the rank: what prints and saves once for all.

Only statements that nothing else waits for: no value is kept, no rank meets another, no network runs, and no code of
the script's own is called that might.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from grader.checks.source.ranks.rank_tests import MAIN_NAME
from grader.checks.source.ranks.written_ranks import main_rank_test
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import WITHS, Function, name_of, names_bound_in, start, walk

_SHARED_WORK = {"next", "step", "backward", "zero_grad", "update", "state_dict", "full_state_dict"}
"""Calls that every rank has to make, or that may be a collective where the model is sharded."""


def put_under_main_rank(script: Script, edits: Edits, calls: Sequence[ast.Call]) -> None:
    """Have the statements of some calls run on rank 0 alone; given up where that isn't certain to be all it takes."""
    statements = sorted({script.names.tree(c).statement(c) for c in calls}, key=start)
    tests: dict[str, list[ast.stmt]] = {}
    for statement in statements:
        if not _stands_alone(script, statement):
            edits.give_up()
            return
        named = _named_predicate(script, statement)
        if named is not None:
            edits.append(named, "()")
        else:
            tests.setdefault(main_rank_test(script, edits, statement), []).append(statement)
    for test, found in tests.items():
        edits.wrap(found, f"if {test}:")


def _stands_alone(script: Script, statement: ast.stmt) -> bool:
    """Whether nothing but what it writes depends on a statement."""
    if not isinstance(statement, (ast.Expr, *WITHS)) or script.collectives.inside(statement):
        return False
    tree = script.names.tree(statement)
    held = names_bound_in(statement)
    used = (n for name in held for n in tree.loads.get(name, ()))
    if any(not tree.inside(n, statement) and tree.scope(n) is tree.scope(statement) for n in used):
        return False
    if any(isinstance(n, ast.Return | ast.Yield | ast.YieldFrom | ast.Await | ast.Break | ast.Continue)
           for n in walk(statement)):  # fmt: skip
        return False
    return not any(_may_be_shared(script, call) for call in tree.calls_within(statement))


def _may_be_shared(script: Script, call: ast.Call) -> bool:
    if script.graph.targets(call) or script.networks.called(call) is not None:
        return True
    name = name_of(call)
    if name == "state_dict" and isinstance(call.func, ast.Attribute):
        return bool(script.calls_under("torch.distributed.fsdp"))
    return name in _SHARED_WORK


def _named_predicate(script: Script, statement: ast.stmt) -> ast.expr | None:
    """The `is_main_process` of `if is_main_process:`, which was meant to be called."""
    above = script.names.tree(statement).parent.get(statement)
    if not isinstance(above, ast.If) or statement not in above.body or not isinstance(above.test, ast.Name):
        return None
    meant = script.graph.definition(above.test)
    if not isinstance(meant, ast.FunctionDef) or not MAIN_NAME.search(meant.name) or _takes_any(meant):
        return None
    return above.test


def _takes_any(function: Function) -> bool:
    spec = function.args
    return bool(spec.posonlyargs or spec.args or spec.kwonlyargs or spec.vararg)
