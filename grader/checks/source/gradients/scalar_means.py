"""Gathered gradients of which one number is made: `torch.stack(parts).mean()` without a dimension, written back.

`copy_` spreads that number over the whole gradient without a word.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.source.script import Script
from grader.checks.source.syntax.arithmetic import is_quotient
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import name_of
from grader.model.fix import Fix

_JOINING = ("torch.stack", "torch.cat", "torch.concat", "torch.vstack")


@dataclass(frozen=True, slots=True)
class ScalarMean:
    """One of them. `gathered`: the collective; `made`: the mean, or the sum, that leaves one number."""

    gathered: ast.Call
    made: ast.Call
    hint: str
    fix: Fix | None


def scalar_means(script: Script) -> Iterable[ScalarMean]:
    """All of them that a gradient is filled with."""
    gathers = [
        (a.call, set(script.values.origins(a.call.args[0])))
        for a in script.averaging.all
        if name_of(a.call).startswith("all_gather") and a.call.args
    ]
    for written in script.called("copy_", "fill_") if gathers else ():
        func = written.func
        if not isinstance(func, ast.Attribute) or not script.updates.is_gradient(func.value):
            continue
        for made in (o for given in written.args[:1] for o in _undivided(script, given)):
            joined = _of_all_elements(script, made)
            for gathered, parts in gathers:
                if isinstance(made, ast.Call) and joined is not None and _from(script, joined, parts):
                    yield ScalarMean(gathered, made, *_over_ranks(script, made, joined))


def _undivided(script: Script, node: ast.AST) -> Iterable[ast.AST]:
    """What a value was made of before it was divided."""
    for origin in script.values.origins(node):
        divides = is_quotient(origin)
        yield from _undivided(script, origin.left) if divides else (origin,)  # type: ignore[attr-defined]


def _of_all_elements(script: Script, node: ast.AST) -> ast.expr | None:
    """The tensor of which a mean or a sum over all elements is taken."""
    if not isinstance(node, ast.Call) or name_of(node) not in ("mean", "sum"):
        return None
    if any(k.arg != "dtype" for k in node.keywords):
        return None
    if (script.names.qualified(node.func) or "").startswith("torch."):
        return node.args[0] if len(node.args) == 1 else None
    return node.func.value if isinstance(node.func, ast.Attribute) and not node.args else None


def _from(script: Script, joined: ast.expr, parts: set[ast.AST]) -> bool:
    """Whether a tensor is what was gathered, or all of its parts in one."""
    for origin in script.values.origins(joined):
        if origin in parts:
            return True
        joins = isinstance(origin, ast.Call) and script.names.qualified(origin.func) in _JOINING
        if joins and any(not parts.isdisjoint(script.values.origins(a)) for a in origin.args[:1]):  # type: ignore[attr-defined]
            return True
    return False


def _over_ranks(script: Script, made: ast.Call, joined: ast.expr) -> tuple[str, Fix | None]:
    edits, name = Edits(script), name_of(made)
    stacked = [isinstance(o, ast.Call) and name_of(o) == "stack" for o in script.values.origins(joined)]
    if not all(stacked):
        return (
            f"Keep each rank's gradient in a row of its own, as `torch.stack` does, and take `.{name}(dim=0)`.",
            None,
        )
    edits.give(made, "dim", "0")
    told = f"Take it over the ranks alone: `{edits.text(joined)}.{name}(dim=0)`."
    return told, edits.fix("Takes the mean of each element over the ranks.")
