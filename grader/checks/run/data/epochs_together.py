"""What epochs show together none of which tells by itself what it left out, and why it can't be told where they don't.

An epoch that was left, one that only samples that come again cut off, or one of a set whose size nobody knows.
"""

from __future__ import annotations

from grader.checks.phrases import count
from grader.checks.rule import Observation, verified
from grader.checks.run.data.epoch_partition import EpochPartition, PartitionKind, expected_size
from grader.checks.run.data.sample_ledger import Ledger, Stream


def drawn_together(
    ledger: Ledger, stream: Stream, judged: tuple[EpochPartition, ...]
) -> tuple[Observation | None, str]:
    """That nothing was left out, or why nobody can tell, as a reason."""
    known = [d for d in judged if d.kind is not PartitionKind.UNKNOWN]
    if not known:
        return None, f"What was drawn could not be compared: {judged[0].reason}."
    expected = expected_size(ledger, stream, known[0].epoch)
    drawn = frozenset().union(*(d.epoch.union for d in known))
    if expected is not None and len(drawn) + known[0].num_droppable >= expected:
        told = count(len(judged), "epoch") if stream.exact else "The first epochs"
        return verified(f"{told} together drew all {expected:,} training samples."), ""
    whole = [d for d in known if d.epoch.complete]
    if not whole:
        return None, "No epoch ran to its end, so what it would have left out is not known."
    if expected is None:
        most = max(d.num_distinct for d in whole)
        return None, (
            f"{count(len(whole), 'whole epoch')} drew {count(most, 'sample')}; how many there are in all is not known, "
            "so neither is whether some are always left out."
        )
    return None, "Only samples that come again tell where an epoch ends, so what one left out is not known."
