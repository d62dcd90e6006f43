"""What needs the process group and comes after the line that takes it down, in the same way through the text.

Follows only what surely runs: the statements behind the group's end, and those behind the calls that lead to it. What
stands under a test other than one of the rank, or of how many there are, may have been kept from there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.phrases import at
from grader.checks.source.causes import names_rank, names_world, stands_at
from grader.checks.source.collectives.collective_calls import ALL, INIT
from grader.checks.source.collectives.joined_groups import CONDITIONS, leads_to
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import FUNCTIONS, later_in_block, name_of, steps_up
from grader.checks.source.training_loops import DDP, SAMPLER
from grader.checks.source.values.reaching_assignments import is_main_block, leaves
from grader.model.call_site import Site
from grader.model.finding import Location

_END = "torch.distributed.destroy_process_group"
_NEEDING = (*ALL, DDP, *(f"torch.distributed.{n}" for n in ("get_rank", "get_world_size", "get_backend")))
_MAX_DEPTH = 5


@dataclass(frozen=True, slots=True)
class LateUse:
    """A call that needs the group when it is over.

    Attributes:
        end: the call that takes the group down. use: the call that needs it.
        statement: what stands behind the end, or behind what leads to it, and comes to the use.
        above: the statement that it should stand above of.
    """

    end: ast.Call
    use: ast.Call
    statement: ast.stmt
    above: ast.stmt

    def places(self, script: Script) -> tuple[ast.AST, ...]:
        """The lines that matter, each once."""
        tree = script.names.tree(self.use)
        within = script.names.tree(self.statement) is tree and tree.inside(self.use, self.statement)
        return (self.use, self.end) if within else (self.use, self.statement, self.end)

    def advice(self, script: Script) -> str:
        """What to write."""
        if any(leads_to(script, c, INIT) for c in script.names.tree(self.above).calls_within(self.above)):
            return (
                f"Take {script.quote(self.end)} out of {script.at(self.end)} and call it behind "
                f"{script.at(self.statement)}: a rank takes the group down when it needs it no more."
            )
        return (
            f"Move {script.quote(self.statement)} from {script.at(self.statement)} above {script.quote(self.above)} "
            f"({script.at(self.above)}): taking the group down is the last thing that a rank does."
        )


def late_uses(script: Script) -> list[LateUse]:
    """The first late use behind each end of the default group."""
    found = []
    for call in script.calls(_END):
        # With an argument it takes down a group of its own.
        if not call.args and not call.keywords and script.may_run(call):
            found += [use for use in [_behind(script, call, call, 0)] if use is not None]
    return found


def advice_for(script: Script, reached: Iterable[Location], ended: Site | None) -> str:
    """What to write where a run stopped at a late use, by the lines of its stack and where it took the group down."""
    lines = [(place.path, place.line) for place in reached]
    for late in late_uses(script):
        where = script.location(late.use)
        met = any(path == where.path and where.line <= n <= (where.end_line or 0) for path, n in lines)
        if met and (ended is None or stands_at(script, late.end, ended)):
            return late.advice(script)
    return (
        f"Take the group down behind this line, and not at {at(ended, 'a place before it')}: that is the last thing "
        "that a rank does."
    )


def trained_behind(script: Script, ended: Site | None) -> tuple[ast.stmt, ast.stmt] | None:
    """The statement by which a group was taken down at a place, and the one behind it that goes on to train."""
    ends = (c for c in script.calls(_END) if stands_at(script, c, ended))
    found = (_training_behind(script, call, 0) for call in ends)
    return next((one for one in found if one is not None), None)


def _training_behind(script: Script, call: ast.Call, depth: int) -> tuple[ast.stmt, ast.stmt] | None:
    tree = script.names.tree(call)
    above, function = tree.statement(call), tree.function(call)
    for statement in _after(script, above)[0]:
        if script.updates.entries(statement, script.training.backwards):
            return above, statement
    sites = script.graph.sites(function) if function is not None and depth < _MAX_DEPTH else ()
    found = (_training_behind(script, s.call, depth + 1) for s in sites if not s.spawned)
    return next((one for one in found if one is not None), None)


def _behind(script: Script, call: ast.Call, end_of_group: ast.Call, depth: int) -> LateUse | None:
    tree = script.names.tree(call)
    above, function = tree.statement(call), tree.function(call)
    if not _surely_runs(script, call, above):
        return None
    after, to_the_end = _after(script, above)
    for statement in after:
        if isinstance(statement, ast.Return):
            break
        calls = tree.calls_within(statement)
        if any(leads_to(script, c, INIT) for c in calls):
            return None
        for use in calls:
            if tree.function(use) is function and _needs(script, use, statement):
                return LateUse(end_of_group, _inner(script, use), statement, above)
        if leaves(script.names, [statement]):
            return None
    if function is None or not to_the_end or depth >= _MAX_DEPTH:
        return None
    sites = (s for s in script.graph.sites(function) if not s.spawned)
    found = (_behind(script, s.call, end_of_group, depth + 1) for s in sites)
    return next((late for late in found if late is not None), None)


def _after(script: Script, statement: ast.stmt) -> tuple[list[ast.stmt], bool]:
    """The statements that run after one in its function, and whether they go to the function's end.

    Not so where it stands under a test or in a loop: what follows there also runs without it.
    """
    tree = script.names.tree(statement)
    after: list[ast.stmt] = []
    for child, above in steps_up(tree.parent, statement):
        after += later_in_block(tree.parent, child)
        if isinstance(above, (*FUNCTIONS, ast.Module)):
            return after, True
        if not (isinstance(above, ast.With | ast.Try) or is_main_block(above) or _asks_for_group(above)):
            break
    return after, False


def _needs(script: Script, call: ast.Call, within: ast.AST, depth: int = 0) -> bool:
    """Whether a call surely comes to one that needs the default group, when it is reached."""
    if not _surely_runs(script, call, within, ranks=depth == 0):
        return False
    return _needs_itself(script, call) or _needed_inside(script, call, depth) is not None


def _needs_itself(script: Script, call: ast.Call) -> bool:
    dotted = script.names.qualified(call.func) or ""
    if dotted == SAMPLER:
        return not all(script.argument(call, name) is not None for name in ("num_replicas", "rank"))
    given = (script.argument(call, name) for name in ("group", "process_group"))
    return dotted in _NEEDING and all(g is None for g in given)


def _needed_inside(script: Script, call: ast.Call, depth: int = 0) -> ast.Call | None:
    for target in script.graph.targets(call) if depth < _MAX_DEPTH else ():
        if not isinstance(target, FUNCTIONS) or target in script.names.tree(target).yields:
            continue
        tree = script.names.tree(target)
        for statement in target.body:
            calls = [c for c in tree.calls_within(statement) if tree.function(c) is target]
            found = next((c for c in calls if _needs(script, c, statement, depth + 1)), None)
            if found is not None:
                return found
            # An early exit, as where there is no group, passes over what follows.
            if any(isinstance(n, ast.Return | ast.Raise) for n in ast.walk(statement)):
                break
    return None


def _inner(script: Script, call: ast.Call, depth: int = 0) -> ast.Call:
    """The call that needs the group itself, where a function of the script makes it."""
    inside = None if _needs_itself(script, call) else _needed_inside(script, call, depth)
    return call if inside is None else _inner(script, inside, depth + 1)


def _surely_runs(script: Script, call: ast.AST, within: ast.AST, *, ranks: bool = False) -> bool:
    """Whether no test stands between a call and a statement around it, but for those of ranks where that is said."""
    tree = script.names.tree(call)
    child, above = call, tree.parent.get(call) if call is not within else None
    while above is not None and child is not within:
        if isinstance(above, CONDITIONS):
            test = getattr(above, "test", None)
            if child is not test and not (ranks and test is not None and _of_ranks(script, test)):
                return False
        child, above = above, tree.parent.get(above)
    return True


def _of_ranks(script: Script, test: ast.expr) -> bool:
    """`if world_size > 1:`, `if rank == 0:`: true on some rank of several, whether there is a group or not."""
    parts = [n for n in script.values.closure(test) if isinstance(n, ast.expr)]
    asked = any(isinstance(n, ast.Call) and "initialized" in name_of(n) for n in parts)
    return (not asked and names_world(script, test)) or names_rank(script, test)


def _asks_for_group(node: ast.AST) -> bool:
    """`if dist.is_initialized():` around the end: behind it there is no group, either way."""
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Call)
        and name_of(node.test) == "is_initialized"
    )
