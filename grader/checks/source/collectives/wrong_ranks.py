"""Sums of gradients that ask the wrong ranks: weights of another group's size, a sum that is left where nobody saves.

Asked only where a scorer has found the sum to be wrong; it says where and what to write, and decides nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.gradients.updates import reads_gradient
from grader.checks.source.gradients.weights import sums
from grader.checks.source.metrics.recorded_losses import Cause
from grader.checks.source.ranks.rank_guards import Guard
from grader.checks.source.script import Script

_SIZE = "torch.distributed.get_world_size"
_SAVING = ("save", "save_file", "dump", "writerow", "writerows")


def wrong_ranks(script: Script) -> Cause | None:
    """The likeliest one; None where the text shows none."""
    return _size_of_all(script) or _left_elsewhere(script)


def _size_of_all(script: Script) -> Cause | None:
    """`dist.get_world_size()` in what is weighed for a sum over a smaller group."""
    for average in sums(script):
        group = script.argument(average.call, "group")
        if not isinstance(group, ast.Name | ast.Attribute | ast.Subscript):
            continue
        for node, size in _sizes(script, average.tensor):
            written = f"{ast.unparse(size.func)}({ast.unparse(group)})"
            return Cause(
                (node, average.call),
                f"{script.quote(node)} at {script.at(node)} counts the ranks of the whole run, and "
                f"{script.at(average.call)} sums over those of `{ast.unparse(group)}`: write `{written}`, so that the "
                "weight is the one of this world size.",
            )
    return None


def _sizes(script: Script, tensor: ast.expr) -> Iterable[tuple[ast.expr, ast.Call]]:
    """Where what is multiplied with a gradient asks for the number of all ranks, and the call that tells it."""
    for product in script.values.closure(tensor):
        if not isinstance(product, ast.BinOp) or not any(map(reads_gradient, ast.walk(product))):
            continue
        for part in ast.walk(product):
            for origin in script.values.origins(part) if isinstance(part, ast.Name | ast.Call) else ():
                name = script.names.qualified(origin.func) if isinstance(origin, ast.Call) else None
                if name == _SIZE and isinstance(origin, ast.Call) and not (origin.args or origin.keywords):
                    assert isinstance(part, ast.expr), "it was looked for"
                    yield part, origin


def _left_elsewhere(script: Script) -> Cause | None:
    """`dist.reduce(…, dst=…)` to another rank than the one that saves."""
    guard = _saver(script)
    for call in (average.call for average in sums(script)) if guard is not None else ():
        if script.names.qualified(call.func) != "torch.distributed.reduce" or guard is None:
            continue
        to = script.argument(call, "dst") or script.argument(call, "group_dst")
        if not isinstance(to, ast.expr) or script.values.constant(to) == 0:
            continue
        return Cause(
            (call, guard.test),
            f"{script.quote(call)} leaves the sum on rank `{ast.unparse(to)}` alone, and what is saved is that of the "
            f"rank in `if {ast.unparse(guard.test)}:` ({script.at(guard.test)}), which holds a part of it: reduce to "
            "that rank, or let all have the sum with `all_reduce`.",
        )
    return None


def _saver(script: Script) -> Guard | None:
    """The test that lets rank 0 alone write a file."""
    saves = script.called(*_SAVING)
    places = [*saves, *(s.call for f in script.updates.running(saves) for s in script.updates.sites(f))]
    guards = (script.guards.partial(place) for place in places)
    return next((g for g in guards if g is not None and "0" in ast.unparse(g.test)), None)
