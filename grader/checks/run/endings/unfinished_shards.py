"""Runs that an exception ended inside a call of `fully_shard`, before all units of the model were there."""

from __future__ import annotations

import ast

from grader.checks.evidence import Evidence
from grader.checks.run.endings.rank_failure import rank_failures
from grader.checks.source.causes import stands_at


def stopped_while_sharding(evidence: Evidence) -> ast.Call | None:
    """The call that raised, of the first rank that failed in one; None where none did."""
    for failure in rank_failures(evidence):
        if failure.follows or not failure.type:
            continue
        for call in evidence.script.called("fully_shard"):
            if stands_at(evidence.script, call, failure.site):
                return call
    return None
