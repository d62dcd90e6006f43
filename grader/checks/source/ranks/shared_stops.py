"""Exits that each rank decides on by itself, decided together: the test's value is reduced before anybody leaves."""

from __future__ import annotations

import ast

from grader.checks.source.collectives.collective_calls import INIT
from grader.checks.source.libraries.spelling import is_bound
from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax.edits import Edits

_NAMES = ("stop", "stop_all", "stop_of_all_ranks")
_AGREEMENTS = ("go_on", "all_go_on", "all_ranks_go_on")


def decided_together(script: Script, leaving: ast.AST) -> str:
    """The lines before the test of a `break` or the like after which all ranks leave together.

    "" where the exit stands under no plain `if` that all ranks come to.
    """
    tree = script.names.tree(leaving)
    branch = tree.parent.get(tree.statement(leaving))
    plain = isinstance(branch, ast.If) and tree.statement(leaving) in branch.body
    if not isinstance(branch, ast.If) or not plain or script.guards.partial(branch) is not None:
        return ""
    above = tree.parent.get(branch)
    if isinstance(above, ast.If) and above.orelse == [branch]:
        return ""
    # Being good enough takes all ranks' word, anything else that of one.
    below = isinstance(branch.test, ast.Compare) and isinstance(branch.test.ops[-1], ast.Lt | ast.LtE)
    ends = isinstance(tree.statement(leaving), ast.Break)
    enough = below and ends and not script.conditions.of(branch.test).partial
    kept, who = ("MIN", "all") if enough else ("MAX", "one")
    return _agreed(script, branch, _NAMES, kept, f"Let all ranks leave where {who} would")


def done_together(script: Script, branch: ast.If) -> str:
    """The lines before a test after which all ranks do what stands under it, or none; "" where it is no plain `if`."""
    above = script.names.tree(branch).parent.get(branch)
    if script.guards.partial(branch) is not None or (isinstance(above, ast.If) and above.orelse == [branch]):
        return ""
    return _agreed(script, branch, _AGREEMENTS, "MIN", "Let all ranks decide alike, as where all would")


def _agreed(script: Script, branch: ast.If, names: tuple[str, ...], kept: str, what: str) -> str:
    """The lines that make a test's value the same on all ranks: the smallest one, or the largest one, of theirs."""
    tree, edits, dist = script.names.tree(branch), Edits(script), "torch.distributed"
    value = next((name for name in names if not is_bound(tree, name)), "")
    on = _device(script, branch)
    lines = (
        f"{value} = {edits.name('torch.tensor', branch)}(float({edits.text(branch.test)}){on})",
        f"{edits.name(f'{dist}.all_reduce', branch)}({value}, op={edits.name(f'{dist}.ReduceOp.{kept}', branch)})",
    )
    if not value:
        return ""
    told = f"{what}: {', '.join(f'`{line}`' for line in lines)} right before "
    return f"{told}{script.at(branch)}, and there `if {value}.item():`."


def _device(script: Script, at: ast.AST) -> str:
    """The argument that puts a tensor where the group can send it."""
    tree = script.names.tree(at)
    if any("device" in tree.definitions.get(scope, {}) for scope in (tree.scope(at), tree.root)):
        return ", device=device"
    started = [script.argument(call, "backend") for call in script.calls(INIT)]
    backends = {script.values.constant(b) if b is not None and b is not UNKNOWN else None for b in started}
    if backends == {"gloo"}:
        return ""
    cuda = Edits(script).name("torch.cuda.is_available", at)
    return ', device="cuda"' if backends == {"nccl"} else f', device="cuda" if {cuda}() else "cpu"'
