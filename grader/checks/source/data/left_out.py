"""Where the text keeps samples from a loader, once a run has shown that some never came: dropped, drawn, cut.

Like `causes`, it answers with nodes, the likeliest first, and decides nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.data.share_causes import loader_at, orders_of
from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax.nodes import name_of, start
from grader.model.call_site import Site

_AT_RANDOM = {"randint", "multinomial", "choice", "choices", "sample", "integers", "random_integers"}
"""Names of calls that draw a part of a set, or draw with replacement."""
_SHUFFLES = {
    "RandomSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
    "randperm",
    "permutation",
    "shuffle",
}
_FEEDING = ("dataset", "sampler", "batch_sampler")


def dropping(script: Script, site: Site | None) -> Iterable[ast.Call]:
    """The loader at a place, and the samplers it is given, that are told `drop_last=True`."""
    loader = loader_at(script, site)
    made = [*_feeding(script, loader), loader]
    for call in (n for n in made if isinstance(n, ast.Call)):
        if script.values.constant(script.argument(call, "drop_last")) is True:
            yield call


def drawn_at_random(script: Script, site: Site | None) -> Iterable[ast.Call]:
    """Calls that draw at random what a loader goes through: with replacement or a part first, then shuffles."""
    loader = loader_at(script, site)
    calls = [n for n in _feeding(script, loader) if isinstance(n, ast.Call)]
    yield from (c for c in calls if name_of(c) in _AT_RANDOM or script.argument(c, "replacement") is not None)
    yield from (c for c in calls if name_of(c) in _SHUFFLES and script.argument(c, "replacement") is None)


def cut_out(script: Script, site: Site | None) -> Iterable[ast.AST]:
    """Slices and ranges that a loader's samples are cut out with."""
    for node in _feeding(script, loader_at(script, site)):
        sliced = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)
        counted = isinstance(node, ast.Call) and name_of(node) in ("range", "arange", "islice", "narrow")
        if sliced or counted:
            yield node


def each_once(script: Script, site: Site | None) -> str:
    """What to give the loader at a place, so that each sample falls to one rank."""
    loader = loader_at(script, site)
    given = script.argument(loader, "dataset") if loader is not None else None
    parts = script.values.origins(given) if isinstance(given, ast.expr) and given is not UNKNOWN else ()
    cut = next((p for p in parts if isinstance(p, ast.Call) and name_of(p) == "Subset" and p.args), None)
    whole = cut.args[0] if cut is not None else given
    named = ast.unparse(whole) if isinstance(whole, ast.Name | ast.Attribute) else "val_set"
    return f"Subset({named}, range(rank, len({named}), world_size))"


def _feeding(script: Script, loader: ast.Call | None) -> list[ast.expr]:
    """All that takes part in what a loader goes through, in the order of the text."""
    given = [script.argument(loader, name) for name in _FEEDING] if loader is not None else []
    parts = [
        part
        for one in given
        if isinstance(one, ast.expr) and one is not UNKNOWN
        for part in script.values.closure(one)
        if isinstance(part, ast.expr)
    ]
    within = {
        n for root in (*parts, *orders_of(script, loader)) for n in ast.walk(root) if isinstance(n, ast.expr)
    }
    return sorted(within, key=start)
