"""Part of the training set is never seen.

## What it finds
Epochs in which the ranks together leave out more samples than one incomplete global batch; epochs that are all broken
off after so many batches, or for which every step begins a new iterator, `next(iter(loader))`; batches of which only a
part goes into the model.

## Why it matters
An epoch is one look at every sample. What no rank draws, the model can't learn from: a sampler that counts more ranks
than there are, or slices that don't reach the end, shrink the training set without a word.

## Example
```python
from accelerate import Accelerator
from torch.utils.data import DataLoader, DistributedSampler

accelerator = Accelerator()
loader = DataLoader(train_set, batch_size=64, sampler=DistributedSampler(train_set))
loader = accelerator.prepare(loader)  # divides each rank's share once more
for images, labels in loader:
    train_step(images, labels)
```

## Use instead
```python
from accelerate import Accelerator
from torch.utils.data import DataLoader

accelerator = Accelerator()
loader = DataLoader(train_set, batch_size=64, shuffle=True)
loader = accelerator.prepare(loader)
for images, labels in loader:
    train_step(images, labels)
```

## How it is seen
In the run, by the union of the indices that all ranks drew in an epoch, against the training set (or the subset that
all ranks share). Passes that deal out the set together and draw nothing twice, such as one that is left and one that
is resumed, are one epoch. Dropping one incomplete global batch is fine. Draws with replacement from shares of the
ranks' own may be meant, and what they leave out is a hint. An epoch that the script leaves early is judged by what all
epochs together have seen. Where every epoch (but for the last) is left after the same number of batches, with more
than one round of the optimizer to come, its rest is skipped each time: a warning, as other epochs draw other samples.
Passes that are begun for one step each, under one number of the sampler, are one epoch. In the source, by such
iterators (a hint), by a loader with a `DistributedSampler` that is handed to `accelerator.prepare`, which divides its
batches among the ranks once more (Fabric leaves such a sampler alone), and by a `DistributedSampler` that was made
over another loader's data set. Where the text rounds the number of samples down (`n // 512 * 512`) and that leaves out
as many as were missed, it is named.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import at, count, epochs, listed, place, share
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.causes import lines
from grader.checks.source.data.foreign_samplers import foreign_samplers
from grader.checks.source.data.reopened_loaders import first_batch_again, gone_through
from grader.checks.source.data.rounded_counts import dealt_in_turn, rounded_counts
from grader.checks.source.data.share_causes import batch_cuts, cut_before, loader_at, own_cuts, whole_set
from grader.checks.source.script import Script
from grader.model.finding import Severity
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.checks.run.data.divided_parts import DividedParts
    from grader.checks.run.data.epoch_partition import EpochPartition
    from grader.checks.run.data.fed_samples import FedSamples
    from grader.checks.run.data.sample_ledger import Stream

SEVERITY = Severity.ERROR
NEEDS = Precondition.RANKS
EXPLAINED_BY = ("DATA003", "DATA007", "DATA011")


def check_source(script: Script) -> Iterable[Hit]:
    """Flag loaders that a sampler of another set divides, a framework divides once more, or each step begins anew."""
    for loader in script.training.loaders() if script.joins_group else ():
        for one in foreign_samplers(script, loader) if script.training.roles(loader).trains else ():
            yield Hit(
                f"{one.says} Samples beyond that are never drawn.", one.hint, lines(script, one.nodes[:1])
            )
    for again in first_batch_again(script) if script.joins_group else ():
        yield Hit(
            f"{script.at(again.begins)} begins a new iterator over the loader for every step of the loop at "
            f"{script.at(again.loop)}, so each step gets the first batch of its epoch, and no other is drawn in it.",
            gone_through(script, again),
            lines(script, again.nodes),
            severity=Severity.HINT,
        )
    words = script.frameworks.words
    if words is None or not words.divides_again:
        return
    for loader in script.training.loaders():
        samplers = script.training.samplers(loader)
        divided = script.training.distributed_samplers(loader)
        if not divided or len(divided) < len(samplers) or not script.frameworks.divides(loader):
            continue
        taken = script.frameworks.prepared[loader]
        if script.guards.alone(divided[0]) or any(not _counts_ranks(script, s) for s in divided):
            continue
        yield Hit(
            message=f"{script.at(taken)} divides the batches of {script.at(loader)} among the ranks, although "
            f"{script.quote(divided[0])} has given each rank its share already. Divided twice, an epoch of N ranks "
            "holds one N-th of the samples; the others are never drawn in it.",
            hint=f"Leave the sampler out, `DataLoader(dataset, shuffle=True)`, and let {words.name} divide it, or keep "
            "the sampler and don't prepare the loader.",
            where=(script.location(loader),),
        )


def _counts_ranks(script: Script, sampler: ast.Call) -> bool:
    """Whether a sampler divides by the ranks there are, and not by a number of the script's own (`num_replicas=1`)."""
    given = script.argument(sampler, "num_replicas")
    return given is None or bool(script.ranks.world(given))


def check_run(evidence: Evidence) -> Observation:
    """Flag complete epochs that miss more than one global batch."""
    from grader.checks.run.data.divided_parts import divided_parts
    from grader.checks.run.data.epoch_partition import epoch_partitions
    from grader.checks.run.data.epochs_together import drawn_together
    from grader.checks.run.data.fed_samples import unused_samples
    from grader.checks.run.data.left_passes import left_each_time
    from grader.checks.run.data.reopened_epochs import reopened

    if unused := unused_samples(evidence):
        return flagged(_unused_hit(evidence, unused))
    reason = "No epoch was seen in which two or more ranks trained."
    for stream in evidence.ledger.training:
        if (parts := divided_parts(evidence.trace, evidence.ledger, stream)) is not None:
            return flagged(_parts_hit(evidence.script, stream, parts))
        judged = epoch_partitions(evidence.ledger, stream)
        lacking = [d for d in judged if d.num_missing is not None and d.num_missing > d.num_droppable]
        if lacking:
            return flagged(_hit(evidence.script, stream, lacking))
        complete = [d for d in judged if d.num_missing is not None]
        if complete:
            missed = max(d.num_missing or 0 for d in complete)
            dropped = f"; at most {count(missed, 'sample')} were dropped" if missed else ""
            whole, many = (
                count(complete[0].num_expected or 0, "training sample"),
                count(len(complete), "epoch"),
            )
            if all(d.own_sets for d in complete):
                return verified(
                    f"Sets of the ranks' own were drawn in {many}, as many samples as there are: {whole}."
                )
            return verified(f"All {whole} were drawn in each of {many}{dropped}.")
        if (again := reopened(evidence.script, evidence.ledger, stream, judged)) is not None:
            return flagged(again)
        if (
            left := left_each_time(evidence.script, evidence.trace, evidence.ledger, stream, judged)
        ) is not None:
            return flagged(left)
        if judged:
            observation, reason = drawn_together(evidence.ledger, stream, judged)
            if observation is not None:
                return observation
    return not_observable(reason)


def _hit(script: Script, stream: Stream, lacking: list[EpochPartition]) -> Hit:
    from grader.checks.run.data.epoch_partition import PartitionKind

    worst = max(lacking, key=lambda d: d.num_missing or 0)
    epoch, missing, expected = worst.epoch, worst.num_missing or 0, worst.num_expected or 0
    ever = frozenset().union(*(e.union for e in stream.epochs))
    never = max(0, expected - len(ever))
    told = sorted(
        {s.loader.num_replicas for s in epoch.shards if s.loader and s.loader.num_replicas is not None}
    )
    cause, hint = (
        "",
        "Let the shards of all ranks add up to the whole set: every k-th sample, starting at the rank.",
    )
    if told and told[-1] > len(epoch.shards):
        cause = f" Its sampler divides among {told[-1]} ranks, but {len(epoch.shards)} trained."
        hint = "Leave out `num_replicas` and `rank`: `DistributedSampler` asks the process group for both."
    # Apart, ranks may draw with replacement on purpose: then some samples come later than others, and that is a choice.
    chosen = epoch.replacement and worst.kind is PartitionKind.DISJOINT
    before = [] if chosen else list(cut_before(script, stream.site))
    shares = list(own_cuts(script, stream.site))
    rounded = list(rounded_counts(script, stream.site, expected, missing)) if not before else []
    cut = lines(script, [*before, *rounded[:1], *shares])
    if rounded:
        cause = f" {script.at(rounded[0])} rounds their number down, {script.quote(rounded[0])}, before they are dealt."
        hint = (
            f"Deal out all samples, without {script.quote(rounded[0])}. Where ranks need equal shares, shuffle all of "
            "them first, and then leave out what is no multiple of the number of ranks: other samples in each epoch."
        )
    elif dealt_in_turn(script, shares):
        hint = (
            f"The shares fit together, but {script.at(shares[0])} takes them from a part of the set: let it hold all "
            "samples."
        )
    if chosen:
        cause = " Each rank draws with replacement from a share of its own, so some come twice and others later or not."
        hint = (
            "Where each sample is to come once in each epoch, draw without replacement. The `weight=` of "
            "`F.cross_entropy` brings classes into balance as well."
        )
    if before:
        cause = (
            f" {script.at(before[0])} takes a share by rank already, and the loader divides that once more."
        )
        hint = whole_set(script, before[0])
    loader = loader_at(script, stream.site)
    for foreign in foreign_samplers(script, loader) if loader is not None else ():
        cause, hint, cut = f" {foreign.says}", foreign.hint, lines(script, foreign.nodes[:1])
    whole_run = f"; {never:,} were never drawn in the whole run" if never > worst.num_droppable else ""
    return Hit(
        message=(
            f"In {epochs(d.epoch.number for d in lacking)} all ranks together drew only {epoch.num_distinct:,} of "
            f"{expected:,} training samples: {missing:,} ({share(missing, expected)}) were left out{whole_run}. "
            f"{at(stream.site, 'The training loop')} feeds the ranks.{cause} "
            "The model can't learn from what no rank sees."
        ),
        hint=hint,
        where=(*cut, *place(stream.site)),
        ranks=epoch.ranks,
        details={
            "epochs": [d.epoch.number for d in lacking],
            "expected": expected,
            "drawn": epoch.num_distinct,
            "missing": missing,
            "never_drawn": never,
            "first_missing": _missing(epoch.union, expected),
            "samples_by_rank": {str(s.rank): s.num_distinct for s in epoch.shards},
        },
        severity=Severity.HINT if chosen else None,
    )


def _parts_hit(script: Script, stream: Stream, parts: DividedParts) -> Hit:
    cuts = list(cut_before(script, stream.site))
    left, never = parts.size - sum(parts.drawn.values()), parts.size - sum(parts.ever.values())
    held = listed(f"{size:,} on rank {rank}" for rank, size in parts.sizes.items())
    drew = listed(f"{drawn:,} to rank {rank}" for rank, drawn in parts.drawn.items())
    by = f" {script.at(cuts[0])} takes a share by rank already." if cuts else ""
    over = f"; {never:,} were never drawn in the whole run" if never else ""
    return Hit(
        message=(
            f"Each rank holds a part of the samples ({held}), and {at(stream.site, 'the loader')} divides each part "
            f"among the ranks once more: in epoch {parts.epoch.number} it gave {drew}. No rank was seen to meet a "
            f"sample of another, so nobody has the rest: {left:,} ({share(left, parts.size)}) were left out{over}.{by} "
            "The model can't learn from what no rank sees."
        ),
        hint=whole_set(script, cuts[0])
        if cuts
        else "Divide once: give every rank the same data set and leave the division to the sampler.",
        where=(*lines(script, cuts), *place(stream.site)),
        ranks=parts.epoch.ranks,
        details={"held": {str(r): n for r, n in parts.sizes.items()}, "missing": left, "never_drawn": never},
    )


def _unused_hit(evidence: Evidence, unused: tuple[FedSamples, ...]) -> Hit:
    worst = min(unused, key=lambda one: one.num_fed / one.num_drawn)
    site = evidence.ledger.training[0].site
    return Hit(
        message=(
            f"Rank {worst.rank} drew {count(worst.num_drawn, 'training sample')} in all, and its model worked on "
            f"{worst.num_fed:,} ({share(worst.num_fed, worst.num_drawn)}): the rest of each batch that "
            f"{at(site, 'the training loop')} brings is thrown away, and the model can't learn from it."
        ),
        hint="Give the model the whole batch as the loader brings it; a smaller batch is the loader's `batch_size`.",
        where=(*lines(evidence.script, batch_cuts(evidence.script)), *place(site)),
        ranks=tuple(one.rank for one in unused),
        details={"fed_by_rank": {str(one.rank): one.num_fed for one in unused}},
    )


def _missing(drawn: frozenset[int | str], expected: int) -> list[int | str]:
    from grader.checks.run.data.epoch_shards import first

    gaps = (i for i in range(min(expected, 10**6)) if i not in drawn)
    return list(first([i for _, i in zip(range(8), gaps, strict=False)]))
