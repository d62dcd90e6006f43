"""Which steps a second look traces line by line: those in which the ranks' models came to differ.

Apart from what is made of that look in `line_changes`: this decides what is run, and kept evidence hangs on it.
"""

from __future__ import annotations

from grader.checks.evidence import Evidence
from grader.checks.run.gradients.exchanges import sent_nothing
from grader.checks.run.models.replica_comparison import (
    compare_finals,
    compare_gradients,
    compare_parameters,
    in_parts_by_hand,
    incomparable,
)

_TO_THE_END = 1 << 30
_ALL_LOOKED_AT = 8
"""Steps from the first on that each run's probe compares; later ones only now and then."""
_BETWEEN = 32


def steps_to_trace(evidence: Evidence) -> tuple[int, int] | None:
    """First and last step (from 0) in which models came to differ, for a second look to see; None: none is needed."""
    trace = evidence.trace
    active = trace.trainers
    if incomparable(trace) or len(active) < 2 or in_parts_by_hand(trace):
        return None
    found = compare_gradients(trace), compare_parameters(trace)
    differing = [c.difference.step for c in found if c.difference is not None]
    if differing:
        step = min(differing)
        return max(0, step - (1 if step < _ALL_LOOKED_AT else _BETWEEN)), step
    pairs = evidence.ledger.layout.pairs(active)
    at_end = {name for one, other in pairs for name, _, _ in compare_finals(one, other) or ()}
    if at_end:
        # What the steps' fingerprints don't stand for may have been different from the first step on.
        compared = {name for r in active for one in r.params for name in one.names}
        return (max(0, *(c.last for c in found)) if at_end & compared else 0), _TO_THE_END
    averaged_by_hand = not any(r.wraps for r in active) and not all(sent_nothing(r) for r in active)
    return (0, 1) if averaged_by_hand else None
