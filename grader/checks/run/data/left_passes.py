"""Epochs that the training loop leaves after so many batches, each time: their rest is skipped, whichever that is.

Not meant: a last epoch that a number of steps ends, a stop in one epoch, an iterator that goes on where it stopped, or
what is less than one round of the optimizer. Whoever leaves each epoch elsewhere goes by a clock, or by a plan of his
own.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from grader.checks.phrases import at, count, place, share
from grader.checks.rule import Hit
from grader.checks.run.data.epoch_partition import EpochPartition, PartitionKind, expected_size
from grader.checks.run.data.epoch_shards import EpochShards
from grader.checks.run.data.sample_ledger import Ledger, Stream
from grader.checks.source.causes import lines
from grader.checks.source.data.loop_breaks import loop_breaks
from grader.checks.source.script import Script
from grader.model.finding import Severity
from grader.model.trace import Trace

_FEWEST = 2


def left_each_time(
    script: Script, trace: Trace, ledger: Ledger, stream: Stream, judged: Sequence[EpochPartition]
) -> Hit | None:
    """The finding about a stream none of whose epochs came to its end, all of them left after as many batches."""
    left = [one for one in judged if _skips(trace, ledger, stream, one)]
    lengths = {s.num_batches for one in left for s in one.epoch.shards}
    whole = judged[:-1]
    if stream.hashed or len(left) < _FEWEST or len(lengths) != 1 or any(one not in left for one in whole):
        return None
    epoch = left[0].epoch
    expected = expected_size(ledger, stream, epoch) or 0
    missing = expected - epoch.num_distinct
    batches = count(lengths.pop(), "batch", "batches")
    if (of := _batches_of_pass(epoch, expected)) is not None:
        batches = f"{left[0].epoch.shards[0].num_batches:,} of {count(of, 'batch', 'batches')}"
    ways = list(loop_breaks(script))
    cause, hint = "", "Let the loop go on"
    if ways:
        what, where = script.quote(ways[-1]), script.at(ways[-1])
        cause = f" {where} breaks it off" + (f", {script.quote(ways[0])}." if len(ways) > 1 else ".")
        hint = f"Take {what} at {where} out"
    return Hit(
        message=f"In each of {count(len(left), 'epoch')} every rank left its pass over the loader "
        f"({at(stream.site, 'the training loop')}) after {batches}: {missing:,} of "
        f"{expected:,} training samples ({share(missing, expected)}) were left out each time.{cause} An epoch is one "
        "look at every sample, and these are shorter than they are said to be.",
        hint=f"{hint}, so that each epoch goes through its loader. To train for a number of steps, count them over all "
        "epochs, and end the last one alone.",
        where=(*lines(script, ways), *place(stream.site)),
        ranks=epoch.ranks,
        details={"epochs": len(left), "expected": expected, "missing": missing},
        severity=Severity.WARNING,
    )


def _skips(trace: Trace, ledger: Ledger, stream: Stream, one: EpochPartition) -> bool:
    """Whether an epoch was left by all ranks while there was more than a round of the optimizer to come."""
    epoch = one.epoch
    if one.kind is not PartitionKind.DISJOINT or not epoch.own or epoch.replacement or one.own_sets:
        return False
    if any(s.exhausted is not False or s.loader is None or s.loader.iterable for s in epoch.shards):
        return False
    expected = expected_size(ledger, stream, epoch)
    round_ = one.num_droppable * max(_batches_per_step(trace, s.rank) for s in epoch.shards)
    return expected is not None and expected - epoch.num_distinct > round_


def _batches_per_step(trace: Trace, rank: int) -> int:
    drawn = [b.step for b in trace.ranks[rank].batches]
    return ceil(len(drawn) / max(1, len(set(drawn))))


def _batches_of_pass(epoch: EpochShards, expected: int) -> int | None:
    """How many batches a rank's pass would have had, where its sampler deals them out among the ranks there are."""
    num_ranks = len(epoch.shards)
    if any(s.loader is None or s.loader.num_replicas != num_ranks for s in epoch.shards):
        return None
    return ceil(ceil(expected / num_ranks) / epoch.shards[0].batch_size)
