"""Ranks train on shards that overlap.

## What it finds
Samples that two or more ranks draw in the same epoch, beyond the few that pad the last round.

## Why it matters
Shards of an epoch have to be disjoint. What two ranks share is learned twice, and mostly something else is not learned
at all: the shards come from different shuffles (a sampler seed that differs by rank), or a sampler was told the wrong
rank or number of ranks.

## Example
```python
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("gloo")
rank = dist.get_rank()
sampler = DistributedSampler(train_set, shuffle=True, seed=42 + rank)
loader = DataLoader(train_set, batch_size=64, sampler=sampler)
```

## Use instead
```python
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("gloo")
sampler = DistributedSampler(train_set, shuffle=True, seed=42)  # the same seed on every rank
loader = DataLoader(train_set, batch_size=64, sampler=sampler)
```

## How it is seen
In the run, by the indices that ranks drew in the same epoch. With k ranks up to k − 1 samples drawn twice are
honest padding, and so are those that fill the last global batch. Draws with replacement are compared like any other,
unless what is divided holds samples several times. Streams and batches cut by hand have no indices: there
hashes of the samples show what two ranks, or two workers of one, were given, and texts are recognised wherever they
were cut. In the source, by a sampler that is told a fixed rank or a seed with the rank in it, and by streams that do
not ask for their worker.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import at, count, epochs, listed, place, ranks, share
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.causes import lines, names_rank
from grader.checks.source.data.orders_by_hand import divided, orders_read
from grader.checks.source.data.overlap_causes import overlap_cause
from grader.checks.source.data.sampler_shares import wrong_shares
from grader.checks.source.data.share_causes import (
    drawn_apart,
    over_samplers,
    own_cuts,
    own_seeds,
    salted,
    seeds_by_rank,
    shares_of,
)
from grader.checks.source.data.untold_samplers import untold_samplers
from grader.checks.source.script import Script
from grader.model.finding import Severity
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.checks.run.data.epoch_partition import EpochPartition
    from grader.checks.run.data.row_overlaps import RowOverlaps
    from grader.checks.run.data.sample_ledger import Stream

SEVERITY = Severity.ERROR
NEEDS = Precondition.RANKS
EXPLAINED_BY = ("DATA001", "DATA007", "DATA011", "DIST004", "DIST008")


def check_source(script: Script) -> Iterable[Hit]:
    """Flag samplers and streams that deal the same samples twice."""
    for found in wrong_shares(script) if script.joins_group else ():
        yield Hit(
            message=f"{script.at(found.call)} {found.what}. Shared samples are learned twice, and others less or not "
            "at all.",
            hint=found.hint,
            where=(script.location(found.call),),
            severity=None if found.on_one_node else Severity.HINT,
        )


def check_run(evidence: Evidence) -> Observation:
    """Flag epochs in which some ranks shared samples though each did not have everything."""
    from grader.checks.run.data.epoch_partition import PartitionKind, epoch_partitions

    copies = _worker_copies(evidence)
    if copies is not None:
        return flagged(copies)
    judged: list[EpochPartition] = []
    for stream in evidence.ledger.training:
        found = epoch_partitions(evidence.ledger, stream)
        if any(d.kind is PartitionKind.WHOLE for d in found):
            return not_observable(
                "Every rank drew the whole set (DATA001), so there are no shards to compare."
            )
        overlapping = [d for d in found if d.kind is PartitionKind.OVERLAP]
        if overlapping and evidence.ledger.rows.shifted and stream.hashed:
            return flagged(_shifted_hit(evidence.ledger.rows, stream))
        if overlapping:
            return flagged(_hit(evidence.script, stream, overlapping))
        judged += found
    disjoint = [d for d in judged if d.kind is PartitionKind.DISJOINT]
    if disjoint:
        if not all(d.epoch.exact for d in disjoint):
            return verified("No sample was drawn by two ranks in the same epoch.")
        if all(d.own_sets for d in disjoint):
            drawn = listed(f"{s.num_distinct:,} on rank {s.rank}" for s in disjoint[0].epoch.shards)
            whole = count(disjoint[0].num_expected or 0, "sample")
            return verified(
                f"Ranks drew from sets of their own, each another one, of {whole} in all ({drawn})."
            )
        padded = max(d.num_excess for d in disjoint)
        padding = f", but for {count(padded, 'sample')} of padding" if padded else ""
        many = count(len(disjoint), "epoch")
        return verified(f"No sample was drawn by two ranks in the same epoch{padding} ({many}).")
    if judged:
        return not_observable(f"The shards could not be compared: {judged[0].reason}.")
    return not_observable("No epoch was seen in which two or more ranks trained.")


def _worker_copies(evidence: Evidence) -> Hit | None:
    """A stream whose workers all yield the same: each sample comes as often as there are workers."""
    for rank in evidence.trace.ranks:
        for loader in rank.loaders:
            if not loader.iterable or loader.num_workers < 2:
                continue
            for one in (p for p in rank.passes if p.loader == loader.id):
                end = math.inf if one.ended_t is None else one.ended_t
                times = Counter(h for f in rank.feeds if one.t <= f.t <= end and not f.spot for h in f.hashes)
                total = sum(times.values())
                if len(times) < 16 or total < 0.9 * loader.num_workers * len(times):
                    continue
                return Hit(
                    message=f"In pass {one.n} rank {rank.rank} trained on {count(len(times), 'sample')} "
                    f"{total / len(times):.1f} times each: {at(loader.site, 'the loader')} starts "
                    f"{loader.num_workers} workers, and each of them yields the whole stream.",
                    hint="Let `__iter__` ask `torch.utils.data.get_worker_info()` and yield every n-th sample from "
                    "`info.id` on.",
                    where=place(loader.site),
                    ranks=(rank.rank,),
                    details={"samples": len(times), "drawn": total, "workers": loader.num_workers},
                )
    return None


def _shifted_hit(rows: RowOverlaps, stream: Stream) -> Hit:
    return Hit(
        message=f"{ranks(rows.ranks)} read the same text, cut at other places: of {count(rows.num_rows, 'row')} that "
        f"were looked at, {rows.shifted} overlap a row of another rank, all shifted alike. "
        f"{at(stream.site, 'The training loop')} feeds these shards. Shared text is learned twice, and other text less "
        "or not at all.",
        hint="Let ranks begin a whole batch apart, `start = (step * world_size + rank) * batch_size * block_size`, or "
        "divide the blocks with a `DistributedSampler`.",
        where=place(stream.site),
        ranks=rows.ranks,
        details={"rows": rows.num_rows, "overlapping": rows.shifted},
    )


def _hit(script: Script, stream: Stream, overlapping: list[EpochPartition]) -> Hit:
    worst = max(overlapping, key=lambda d: d.epoch.num_shared)
    epoch = worst.epoch
    numbers = [d.epoch.number for d in overlapping]
    seeds = sorted(
        {s.loader.sampler_seed for s in epoch.shards if s.loader and s.loader.sampler_seed is not None}
    )
    told = sorted(
        {s.loader.sampler_rank for s in epoch.shards if s.loader and s.loader.sampler_rank is not None}
    )
    cause, hint = (
        "",
        "Let all ranks shuffle with the same seed and take every k-th sample, each from its own rank on.",
    )
    if len(seeds) > 1:
        cause = (
            f" The samplers were seeded differently ({listed(seeds)}), so each rank divides another shuffle."
        )
        hint = "Give `DistributedSampler` the same `seed` on every rank, or leave it out; `set_epoch` varies the order."
    elif len(told) == 1 and len(epoch.shards) > 1:
        cause = f" Every sampler was told that its rank is {told[0]}, so all take the same share."
        hint = "Pass `rank=dist.get_rank()` to the sampler, or leave it out: it asks the process group by itself."
    numbers_told = {s.rank: s.sampler_epoch for s in epoch.shards if s.sampler_epoch is not None}
    by_rank = list(seeds_by_rank(script, stream.site)) if len(seeds) > 1 else []
    if by_rank:
        first = script.at(by_rank[0])
        cause = f"{cause} The rank comes into the seed at {first}: {script.quote(by_rank[0])}."
        hint += f" Let {first} leave that seed as it is: one for augmentation is a variable of its own."
    apart = not cause and len(set(numbers_told.values())) > 1
    sources = list(shares_of(script, stream.site)) if len(told) == 1 else []
    ranked = [s for s in own_seeds(script, stream.site) if names_rank(script, s)]
    sources += by_rank[:1] or ranked or own_cuts(script, stream.site)
    if ranked:
        cause = (
            f" {script.at(ranked[0])} seeds the shuffle with the rank, so each rank divides another order."
        )
        hint = "Seed it alike on every rank: a common seed plus the epoch. The rank only chooses the share."
    for alone in drawn_apart(script, stream.site):
        sources, cause, hint = list(alone.nodes), f" {alone.says}", alone.hint
    for outer, inner in over_samplers(script, stream.site):
        sources, whole = [outer], script.quote(inner)
        cause = (
            f" {script.at(outer)} draws positions in {whole}, {script.quote(outer)}: the numbers from 0 on, which "
            "are the same on every rank, and not the samples that it stands for."
        )
        hint = f"Put {whole} in the place of {script.quote(outer)}, and make it with `shuffle=True`."
    if apart and not cause:
        which = listed(f"{n} on rank {r}" for r, n in numbers_told.items())
        cause = f" The samplers were told different epochs ({which}), so each rank divides another shuffle."
        hint = "Call `set_epoch(epoch)` on every rank, with the same number."
        sources = [found.where for found in untold_samplers(script)]
    text = salted(script, stream.site) or (None if cause else overlap_cause(script, min(numbers)))
    if text is not None:
        sources, cause, hint = list(text.nodes), f" {text.says}", text.hint
    orders = orders_read(script) if stream.hashed and not cause else []
    for order in orders[:1]:
        sources, hint = [order], divided(script, order)
        cause = f" {script.at(order)} draws the order that they read by."
    if epoch.replacement and not cause:
        cause = " Ranks draw with replacement, and not from shares of their own."
        hint = (
            "Deal one order of all samples out to the ranks, `DistributedSampler`; draws with replacement stay apart "
            "within `Subset(train_set, range(rank, len(train_set), world_size))`."
        )
    if epoch.replacement and worst.num_missing:
        cause += f" {worst.num_missing:,} of {worst.num_expected or 0:,} samples no rank drew in that epoch."
    shared = share(epoch.num_shared, epoch.num_distinct)
    alike = epochs(numbers) if epoch.exact else "each of the first epochs"
    example = f"first ones: {listed(epoch.shared)}; " if not stream.hashed else ""
    return Hit(
        message=(
            f"{ranks(epoch.ranks)} shared {'' if epoch.exact else 'about '}{count(epoch.num_shared, 'sample')} in "
            f"epoch {epoch.number} ({example}{shared} of what was drawn), in {alike} alike. "
            f"{at(stream.site, 'The training loop')} feeds these shards.{cause} "
            "Shared samples are learned twice, and others less or not at all."
        ),
        hint=hint,
        where=(*lines(script, sources), *place(stream.site)),
        ranks=epoch.ranks,
        details={
            "epochs": numbers,
            "shared": epoch.num_shared,
            "first_shared": list(epoch.shared),
            "padding_allowed": worst.num_allowed,
            "samples_by_rank": {str(s.rank): s.num_distinct for s in epoch.shards},
            "sampler_seeds": seeds,
            "sampler_ranks": told,
        },
    )
