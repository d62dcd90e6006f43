"""Sums over all ranks of what each has of a sharded gradient: parts of one parameter that do not belong together."""

from __future__ import annotations

import ast

from grader.checks.source.gradient_averaging import Average
from grader.checks.source.script import Script
from grader.checks.source.syntax_nodes import name_of
from grader.checks.source.training_loops import FULLY_SHARD

_SUMS = ("all_reduce", "all_reduce_coalesced", "reduce")


def adds_parts(script: Script, average: Average) -> ast.Call | None:
    """The call that shards the model where an average adds up its parts; None where it doesn't.

    Over a group of their own the copies of one part may meet, and a replicated DTensor is whole on every rank.
    """
    sharded = script.calls(*FULLY_SHARD)
    if (
        not sharded
        or script.collectives.direct.get(average.call) not in _SUMS
        or script.mentioned("Replicate")
    ):
        return None
    made = (n for n in script.values.closure(average.tensor) if isinstance(n, ast.Call | ast.Attribute))
    local = any(name_of(n) == ("to_local" if isinstance(n, ast.Call) else "_local_tensor") for n in made)
    return sharded[-1] if local else None
