"""Data sets that ranks open while another one is still downloading them: nothing lets them meet in between.

Follows helpers that are called at one place. What may be a wait of any kind in between is believed to be one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from grader.checks.source.ranks.rank_order import in_turn
from grader.checks.source.ranks.rank_sets import RankSet
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import name_of, start

_LIBRARY = "torchvision.datasets."
_WAITS = ("wait", "sleep", "acquire", "barrier", "sync", "lock", "rendezvous")
_MAX_DEPTH = 4


@dataclass(frozen=True, slots=True)
class EarlyOpen:
    """A call that opens a data set, rank 0's download that may not be over then, and whether all ranks open it."""

    call: ast.Call
    fetch: ast.Call
    everywhere: bool


def opened_early(script: Script, fetching: Sequence[ast.Call], words: tuple[str, ...]) -> Iterable[EarlyOpen]:
    """Calls that open on other ranks what rank 0 alone downloads, with no wait between; each with the last such one.

    Args:
        fetching: all calls that download. words: in names of functions that do.
    """
    found: dict[ast.Call, EarlyOpen] = {}
    for fetch in fetching:
        name = script.names.qualified(fetch.func) or ""
        if not name.startswith(_LIBRARY) or in_turn(script, fetch, fetching, words):
            continue
        for call in script.calls(name):
            if call in fetching or not _same_files(script, fetch, call):
                continue
            everywhere = script.guards.on_every_rank(call)
            if _unmet(script, fetch, call, everywhere) and not in_turn(script, call, fetching, words):
                found[call] = EarlyOpen(call, fetch, everywhere)
    return found.values()


def _same_files(script: Script, fetch: ast.Call, call: ast.Call) -> bool:
    ways = [script.argument(c, "root") or next(iter(c.args), None) for c in (fetch, call)]
    one, other = (ast.unparse(w) if isinstance(w, ast.expr) else "" for w in ways)
    return one == other


def _unmet(script: Script, fetch: ast.Call, call: ast.Call, everywhere: bool) -> bool:
    """Whether rank 0 alone downloads, and the others open it with no wait behind the one and before the other."""
    waits: list[ast.Call] = []
    alone = False
    for place in _levels(script, fetch):
        guard = script.guards.partial(place)
        alone = alone or (guard is not None and guard.condition.which is RankSet.MAIN)
        opening = list(_levels(script, call))
        beside = [o for o in opening if _scope(script, o) is _scope(script, place)]
        if alone and beside:
            below = opening[: opening.index(beside[0])]
            before = [c for o in below for c in _calls(script, o) if start(c) < start(o)]
            if not everywhere:
                other = script.guards.partial(call)
                return other is not None and other.condition.which is RankSet.OTHERS
            between = [c for c in _calls(script, place) if start(place) < start(c) < start(beside[0])]
            follows = start(place) < start(beside[0])
            return follows and not any(_may_wait(script, c) for c in (*waits, *before, *between))
        waits += [c for c in _calls(script, place) if start(c) > start(place)]
    return False


def _levels(script: Script, node: ast.Call) -> Iterator[ast.Call]:
    """A call, the only call of the function that it stands in, and so on."""
    for _ in range(_MAX_DEPTH):
        yield node
        function = script.names.tree(node).function(node)
        sites = script.graph.sites(function) if function is not None else []
        if len(sites) != 1 or sites[0].spawned:
            return
        node = sites[0].call


def _scope(script: Script, node: ast.AST) -> ast.AST:
    tree = script.names.tree(node)
    return tree.function(node) or tree.root


def _calls(script: Script, node: ast.AST) -> list[ast.Call]:
    scope = _scope(script, node)
    return [c for c in script.names.tree(node).calls_within(scope) if _scope(script, c) is scope]


def _may_wait(script: Script, call: ast.Call) -> bool:
    asks_store = isinstance(call.func, ast.Attribute) and "store" in ast.unparse(call.func.value).lower()
    named = any(word in name_of(call).lower() for word in _WAITS)
    return asks_store or named or bool(script.collectives.of(call))
