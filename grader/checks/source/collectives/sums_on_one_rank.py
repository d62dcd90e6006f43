"""Sums that `reduce` gives to one rank, and that all ranks go on with.

What becomes of them may be lost in a table or an object. Asked only where a run has shown that ranks decided otherwise
than each other; alone such a line is no fault, as long as only the rank that has the sum says it.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from grader.checks.source.collectives.reduction_fixes import for_all_ranks
from grader.checks.source.collectives.reduction_results import reductions
from grader.checks.source.script import Script
from grader.checks.source.values.data_flow import reads_after, sent_on, source_text


@dataclass(frozen=True, slots=True)
class SumOnOneRank:
    """The call, where all ranks read the sum first, and what to say of it; `says` is a sentence without its stop."""

    call: ast.Call
    read: ast.expr
    says: str
    hint: str


def sum_on_one_rank(script: Script) -> SumOnOneRank | None:
    """The first of a script."""
    for call, name, tensor in reductions(script):
        root = script.values.constant(script.argument(call, "dst"))
        if name != "reduce" or not isinstance(root, int) or not source_text(tensor):
            continue
        # What the rank that has the sum makes of it for itself is no sum that the others go on with.
        reads = reads_after(script, tensor, call, hands_on=lambda node: script.guards.partial(node) is None)
        if any(sent_on(script, node) for node in reads):
            continue
        read = next((node for node in reads if script.guards.on_every_rank(node)), None)
        if read is not None:
            written, _ = for_all_ranks(script, call, tensor)
            return SumOnOneRank(
                call,
                read,
                f"{script.quote(call)} at {script.at(call)} leaves the sum on rank {root} alone: what the other ranks "
                f"read at {script.at(read)} is their own value, or a part of the sum, and what they decide by it is "
                f"another decision",
                f"Write `{written}` at {script.at(call)}: all ranks then have the same sum, and decide alike.",
            )
    return None
