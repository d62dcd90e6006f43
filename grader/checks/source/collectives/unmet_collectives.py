"""Collectives that the text lets only some ranks reach, and that the others meet in no branch of theirs."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from grader.checks.source.collectives.collective_calls import CollectiveCall
from grader.checks.source.ranks.early_exits import leaves_a_loop
from grader.checks.source.ranks.rank_guards import Guard
from grader.checks.source.ranks.rank_sets import RankSet
from grader.checks.source.script import Script


@dataclass(frozen=True, slots=True)
class UnmetCollective:
    """A call under a rank test.

    Attributes:
        call: that stands under the test; guard: the test.
        collectives: what it runs, itself or within a helper.
        under_test: all such calls under the same test.
    """

    call: ast.Call
    guard: Guard
    collectives: tuple[CollectiveCall, ...]
    under_test: tuple[ast.Call, ...] = ()


def unmet_collectives(script: Script) -> list[UnmetCollective]:
    """Collectives, direct or inside a helper, under a rank test whose other branch has none."""
    suspects = list(_suspects(script)) if script.collectives.direct else []
    return [
        replace(one, under_test=tuple(s.call for s in suspects if s.guard.test is one.guard.test))
        for one in suspects
        if not _met_elsewhere(script, one, suspects)
    ]


def _suspects(script: Script) -> Iterable[UnmetCollective]:
    for call, inside in script.collectives.running.items():
        guard = script.guards.partial(call)
        # A group of some of the processes is legal where its size is given (parameter servers, RPC).
        own_group = script.collectives.direct.get(call) == "init_process_group"
        if guard is not None and guard.condition.which is RankSet.SOME and own_group:
            continue
        if guard is None or not guard.condition.sure or script.guards.alone(call):
            continue
        # With this, `new_group` is a matter of its members.
        if any(
            k.arg == "use_local_synchronization" and script.values.constant(k.value) for k in call.keywords
        ):
            continue
        if not leaves_a_loop(script, call, guard.test):
            yield UnmetCollective(call, guard, inside)


def _met_elsewhere(script: Script, suspect: UnmetCollective, suspects: Sequence[UnmetCollective]) -> bool:
    """Whether the ranks that do not come here meet the others in a collective of their own branch."""
    tree = script.names.tree(suspect.call)
    branch = tree.parent.get(suspect.guard.test)
    if isinstance(branch, ast.If):
        here = branch.body if any(tree.inside(suspect.call, s) for s in branch.body) else branch.orelse
        there = branch.orelse if here is branch.body else branch.body
        if any(script.collectives.inside(s) for s in there):
            return True
    names = {c.name for c in suspect.collectives}
    function = tree.function(suspect.call)
    for other in suspects:
        if other.call is suspect.call or script.names.tree(other.call).function(other.call) is not function:
            continue
        opposite = other.guard.condition.which is suspect.guard.condition.negated().which
        if opposite and names & {c.name for c in other.collectives}:
            return True
    return False
