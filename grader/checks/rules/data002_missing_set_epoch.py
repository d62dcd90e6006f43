"""Every epoch deals out the samples in the same way.

## What it finds
A shuffled training set whose order, or whose division among ranks, is the same in each epoch: mostly a
`DistributedSampler` that was never told the epoch, or shares that were cut once and are shuffled by themselves.

## Why it matters
`DistributedSampler` shuffles by a generator seeded with `seed + epoch`, and its epoch stays 0 until `set_epoch` is
called. Without it each rank meets the same samples in the same batches for ever, which makes gradients less varied
and generalisation worse, silently. Shares that never mix leave samples of two of them without ever being in one batch.

## Example
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("gloo")
model = DistributedDataParallel(build_model())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
sampler = DistributedSampler(train_set, shuffle=True)
loader = DataLoader(train_set, batch_size=64, sampler=sampler)
for epoch in range(10):
    for images, labels in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
dist.destroy_process_group()
```

## Use instead
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("gloo")
model = DistributedDataParallel(build_model())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
sampler = DistributedSampler(train_set, shuffle=True)
loader = DataLoader(train_set, batch_size=64, sampler=sampler)
for epoch in range(10):
    sampler.set_epoch(epoch)
    for images, labels in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
dist.destroy_process_group()
```

## How it is seen
In the run, by comparing the samples of one rank's epochs in the order in which they were delivered: two shuffled
epochs are never equal by chance, and neither are the shares of ranks. One pass needs no new order, and a set that is
never shuffled has none to renew. In the source, by a shuffling sampler in an epoch loop without a call of `set_epoch`
on it that every rank comes by, or what does the same: `sampler.epoch = epoch`, or a new sampler in each epoch with the
epoch's number in its seed.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import TYPE_CHECKING

from grader.checks.phrases import at, count, epochs, listed, place, ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.causes import lines
from grader.checks.source.missed_epochs import missed_epochs, takes_epoch, untold
from grader.checks.source.orders_by_hand import divided, orders_read
from grader.checks.source.script import Script
from grader.checks.source.share_causes import dealt_anew, loader_at, own_cuts, own_seeds, seeded_by_epoch
from grader.checks.source.untold_samplers import TELL, untold_samplers
from grader.model.finding import Severity
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.checks.run.epoch_shards import Shard
    from grader.checks.run.sample_ledger import Stream

SEVERITY = Severity.WARNING
NEEDS = Precondition.GROUP

_MIN_SAMPLES = 16
"""Shorter runs of equal samples could be chance: 16 shuffled samples agree once in 16! draws."""

_MIN_EPOCHS = 2
_PADDING = 0.02
_WHOLE = 0.9


def check_source(script: Script) -> Iterable[Hit]:
    """Flag shuffling samplers of a training loop that runs several times and never tells them the epoch."""
    for found in untold_samplers(script):
        yield Hit(
            message=f"{script.at(found.sampler)} builds a sampler that shuffles, {script.quote(found.sampler)}, the "
            f"training loop runs several times, and {found.says}",
            hint=found.hint,
            where=(script.location(found.where),),
            fix=found.fix,
        )


def check_run(evidence: Evidence) -> Observation:
    """Flag ranks that met their samples in the same order in two or more epochs."""
    reasons: list[str] = []
    renewed: list[str] = []
    for stream in evidence.ledger.training:
        repeated = {rank: _repeated(stream.shards(rank)) for rank in stream.ranks}
        repeated = {rank: numbers for rank, numbers in repeated.items() if numbers}
        if repeated:
            return flagged(_hit(evidence.script, stream, repeated))
        if _dealt_once(stream):
            return flagged(_dealt_hit(evidence.script, stream, asked=evidence.expected.new_shares))
        _clean(stream, renewed, reasons)
    if renewed:
        return verified(renewed[0])
    return not_observable(reasons[0] if reasons else "No training epoch was seen.")


def _dealt_once(stream: Stream) -> bool:
    """Whether ranks shuffled shares that never mix: what one met in all epochs no other has met."""
    epochs_of = [[s for s in stream.shards(rank) if s.exhausted] for rank in stream.ranks]
    if len(epochs_of) < 2 or min(map(len, epochs_of)) < _MIN_EPOCHS:
        return False
    if any(s.samples is None or s.in_order for shards in epochs_of for s in shards):
        return False
    met = [{one for s in shards for one in s.samples or ()} for shards in epochs_of]
    if any(
        s.num_distinct < _WHOLE * len(own) for shards, own in zip(epochs_of, met, strict=True) for s in shards
    ):
        return False  # a part of the share in each epoch: something divides it once more
    # Dealt anew, half of what one of two ranks met in two epochs is met by the other, too.
    return all(len(a & b) <= _PADDING * min(len(a), len(b)) for a, b in combinations(met, 2))


def _dealt_hit(script: Script, stream: Stream, *, asked: bool) -> Hit:
    sizes = {rank: stream.shards(rank)[0].num_samples for rank in stream.ranks}
    told = listed(f"{n:,} on rank {r}" for r, n in sizes.items())
    return Hit(
        message=(
            f"{ranks(stream.ranks)} drew from shares of their own in all "
            f"{count(len(stream.shards(stream.ranks[0])), 'epoch')} ({told}): {at(stream.site, 'The training loop')} "
            "deals the samples out once, and only their order within a share changes. Samples of two shares never meet "
            "in other batches."
        ),
        hint=dealt_anew(script, stream.site),
        where=(*lines(script, own_cuts(script, stream.site)), *place(stream.site)),
        ranks=tuple(stream.ranks),
        # Local shuffling is a known way, where nobody asks for more.
        severity=None if asked else Severity.HINT,
        details={"samples_by_rank": {str(r): n for r, n in sizes.items()}},
    )


def _clean(stream: Stream, renewed: list[str], reasons: list[str]) -> None:
    longest = max((stream.shards(rank) for rank in stream.ranks), key=len)
    if len(longest) < 2:
        if stream.hashed:
            reasons.append("No fed sample came up twice, so where an epoch ends is not known.")
        elif longest[0].exhausted is None:
            reasons.append("The run ended within its first epoch, so there was no second order to compare.")
        else:
            renewed.append("There was one pass over the training set, so no second order was needed.")
    elif any(s.samples is None for s in longest):
        reasons.append("The training loader does not tell which samples it drew.")
    elif all(s.in_order for s in longest):
        renewed.append(
            f"{count(len(longest), 'epoch')} ran in the data set's own order: nothing is shuffled, "
            "so there is no order to renew."
        )
    else:
        each = f"Each of {count(len(longest), 'epoch')}" if stream.exact else "Each epoch"
        renewed.append(f"{each} brought its samples in a new order.")


def _repeated(shards: tuple[Shard, ...]) -> list[int]:
    """Numbers of the epochs of one rank that repeat an earlier one's order; the earlier one's comes first."""
    groups: dict[object, list[int]] = {}
    known = [(n, s) for n, s in enumerate(shards) if s.samples is not None and not s.in_order]
    # Epochs that were left early are compared as far as the shortest goes.
    whole = [(n, s) for n, s in known if s.exhausted]
    pool = whole if len(whole) > 1 else known
    shortest = min((s.num_samples for _, s in pool), default=0)
    if shortest < _MIN_SAMPLES:
        return []
    for number, shard in pool:
        groups.setdefault(_order(shard, shortest), []).append(number)
    return max((g for g in groups.values() if len(g) > 1), key=len, default=[])


def _order(shard: Shard, length: int) -> object:
    samples = (shard.samples or ())[:length]
    loader = shard.loader
    if loader is not None and loader.num_workers and shard.batch_size > 1:
        # Workers may deliver whole batches out of order (`in_order=False`): equal batches are what counts.
        size = shard.batch_size
        return frozenset(samples[i : i + size] for i in range(0, length - length % size, size))
    return samples


def _hit(script: Script, stream: Stream, repeated: dict[int, list[int]]) -> Hit:
    said = list(check_source(script))
    loader = loader_at(script, stream.site)
    sown = [] if said else [s for s in own_seeds(script, stream.site) if not takes_epoch(script, s)]
    seeds = lines(script, sown)
    missed = [] if said or seeds else list(missed_epochs(script, loader))
    drawn = orders_read(script)[:1] if stream.hashed else []
    rank, numbers = next(iter(repeated.items()))
    shard = stream.shards(rank)[numbers[0]]
    sampler = shard.loader.sampler if shard.loader else ""
    told = {s.sampler_epoch for s in stream.shards(rank)}
    cause = ""
    if sampler == "DistributedSampler" and len(told) == 1 and None not in told:
        cause = (
            f"The `DistributedSampler` was at epoch {told.pop()} each time: `set_epoch` did not reach it. "
        )
    cause = missed[0].says if missed and (loader is not None or cause) else cause
    return Hit(
        message=(
            f"{ranks(repeated)} met the same samples in the same order in {epochs(numbers)} "
            f"({count(shard.num_samples, 'sample')} each). {cause}Every epoch repeats the first one's batches, "
            "so shuffling helps only once."
        ),
        hint=said[0].hint
        if said
        else seeded_by_epoch(script, sown[0])
        if seeds
        else missed[0].hint
        if missed
        else untold(script, loader)
        or (divided(script, drawn[0] if drawn else None) if stream.hashed else TELL),
        where=(
            *(said[0].where if said else seeds or lines(script, drawn)),
            *lines(script, [n for m in missed for n in (m.call, *m.tests)]),
            *place(stream.site),
        ),
        ranks=tuple(sorted(repeated)),
        details={
            "epochs_by_rank": {str(r): n for r, n in repeated.items()},
            "first_samples": list((shard.samples or ())[:8]),
            "sampler": sampler,
        },
    )
