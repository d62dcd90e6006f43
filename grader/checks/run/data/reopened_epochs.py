"""Epochs for which an iterator was begun anew in every step, as a finding of DATA004."""

from __future__ import annotations

from collections.abc import Sequence

from grader.checks.phrases import at, count, place, share, told_once
from grader.checks.rule import Hit
from grader.checks.run.data.epoch_partition import EpochPartition, expected_size
from grader.checks.run.data.sample_ledger import Ledger, Stream
from grader.checks.source.causes import lines
from grader.checks.source.data.loop_breaks import breaks_off
from grader.checks.source.data.reopened_loaders import gone_through, reopened_at
from grader.checks.source.script import Script
from grader.model.finding import Severity

_FEWEST = 3
"""Iterators of one epoch that are more than a look at its beginning."""


def reopened(script: Script, ledger: Ledger, stream: Stream, judged: Sequence[EpochPartition]) -> Hit | None:
    """The finding about a stream all of whose epochs were drawn like that; None where a `break` is what left them."""
    epochs = [one.epoch for one in judged]
    shards = [s for epoch in epochs for s in epoch.shards]
    if not shards or stream.hashed or max(s.openings for s in shards) < _FEWEST:
        return None
    again = all(s.openings > 1 or s.exhausted is not True for s in shards)
    expected = expected_size(ledger, stream, epochs[0])
    if not again or breaks_off(script) or expected is None or any(s.samples is None for s in shards):
        return None
    first = max(shards, key=lambda s: s.openings)
    drawn = frozenset().union(*(epoch.union for epoch in epochs))
    missing = expected - min(epoch.num_distinct for epoch in epochs)
    never = expected - len(drawn)
    if missing <= judged[0].num_droppable:
        return None
    loader = f"the loader ({at(stream.site)})" if stream.site else "the loader"
    begins = f"{at(first.opened, 'The training loop')} begins a new iterator over {loader} for every step"
    # The first batch again, or others by chance.
    same = all(s.num_distinct <= s.num_samples / s.openings + s.batch_size / 2 for s in shards)
    if same:
        each = f" in each of {count(len(epochs), 'epoch')}" if len(epochs) > 1 else ""
        seen = (
            f", so each step gets the first batch of its epoch. A rank took {count(first.openings, 'step')} on the "
            f"same {count(first.num_distinct, 'sample')}{each}, and {missing:,} of {expected:,} training samples "
            f"({share(missing, expected)}) were left out."
        )
    else:
        seen = (
            f", and each begins with a new order, of which one step takes the first batch: in "
            f"{count(sum(s.openings for s in shards if s.rank == first.rank), 'step')} samples came by chance, some of "
            f"them several times, and {never:,} of {expected:,} ({share(never, expected)}) were never drawn."
        )
    found = reopened_at(script, first.opened)
    return Hit(
        message=begins + seen,
        hint=gone_through(script, found),
        where=told_once(
            (*lines(script, found.nodes if found else ()), *place(first.opened), *place(stream.site))
        ),
        ranks=epochs[0].ranks,
        details={"epochs": len(epochs), "expected": expected, "missing": missing, "never_drawn": never},
        severity=Severity.WARNING if same or never > judged[0].num_droppable else Severity.HINT,
    )
