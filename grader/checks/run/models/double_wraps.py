"""Models that a run wrapped in DDP twice, by what the wrappers were given."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.phrases import at, place, told_once
from grader.checks.rule import Hit
from grader.checks.source.causes import lines
from grader.checks.source.models.double_wraps import COSTS, ONCE, takes_wrapper, wrapping_calls
from grader.checks.source.script import Script
from grader.model.trace import RankTrace, Wrap

_WRAPPER = "DistributedDataParallel"


def twice_wrapped(rank: RankTrace) -> tuple[Wrap, Wrap | None] | None:
    """The first wrapper that was given one, with that one if it was told of."""
    wraps = [w for w in rank.wraps if w.kind == "ddp"]
    for number, outer in enumerate(wraps):
        if outer.module == _WRAPPER:
            inside = (w for w in reversed(wraps[:number]) if w.num_params == outer.num_params)
            return outer, next(inside, None)
    return None


def outer_wraps(script: Script, outer: Wrap, inner: Wrap | None) -> tuple[ast.AST, ...]:
    """The lines that wrap, the one that is too many first."""
    calls = wrapping_calls(script, [outer.site, *([inner.site] if inner is not None else [])])
    return tuple(sorted(calls, key=lambda call: not takes_wrapper(script, call)))


def double_wrap(script: Script, active: Iterable[RankTrace]) -> Hit | None:
    """The finding; None where no rank wrapped a wrapper."""
    seen = [(rank, found) for rank in active if (found := twice_wrapped(rank)) is not None]
    if not seen:
        return None
    outer, inner = seen[0][1]
    calls = outer_wraps(script, outer, inner)
    again = script.at(calls[0]) if calls else at(outer.site, "the script")
    first = script.at(calls[1]) if len(calls) > 1 else at(inner.site if inner else None, "an earlier line")
    return Hit(
        message=f"{again} wraps a model in DDP that {first} has wrapped already: {COSTS}.",
        hint=ONCE.format(again=script.quote(calls[0]) if calls else "the second wrapper"),
        where=told_once((*lines(script, calls), *place(outer.site))),
        ranks=tuple(rank.rank for rank, _ in seen),
    )
