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
epochs are never equal by chance, and neither are the shares of ranks. Batches that a model is given after the loader's
one pass are known by hashes of their samples; what a data set of one's own gives for equal indices, by labels, too. One
pass needs no new order. A set that is never shuffled has none to renew, but where a task asks for new shares in each
epoch, it is found not to deal them out. In the source, by a shuffling sampler in an
epoch loop without a call of `set_epoch` on it that every rank comes by, or what does the same: `sampler.epoch = epoch`,
or a new sampler in each epoch with the epoch's number in its seed; by `itertools.cycle` around a loader that shuffles;
by a list that is made of a sampler once; and by a data set that is told the epoch while its workers persist.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import at, count, epochs, listed, place, ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.causes import CauseInText, lines
from grader.checks.source.data.frozen_orders import drawn_once, frozen_in_training, frozen_orders
from grader.checks.source.data.kept_epochs import cycled_loaders, stale_copies
from grader.checks.source.data.missed_epochs import missed_epochs, takes_epoch, untold
from grader.checks.source.data.orders_by_hand import divided, may_mix, orders_read
from grader.checks.source.data.share_causes import dealt_anew, loader_at, own_cuts, own_seeds, seeded_by_epoch
from grader.checks.source.data.untold_samplers import TELL, untold_samplers
from grader.checks.source.script import Script
from grader.model.finding import Severity
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.checks.run.data.sample_ledger import Stream

SEVERITY = Severity.WARNING
NEEDS = Precondition.GROUP
EXPLAINED_BY = ("DATA006",)
_REPEATS = "Every epoch repeats the first one's batches, so shuffling helps only once."


def check_source(script: Script) -> Iterable[Hit]:
    """Flag shuffling samplers of a training loop that runs several times and never tells them the epoch."""
    frozen = list(frozen_in_training(script))
    for cause in frozen:
        says = f"{cause.says} The training loop runs several times, each time in that order."
        yield Hit(message=says, hint=cause.hint, where=lines(script, cause.nodes))
    for found in untold_samplers(script):
        if any(found.sampler in script.values.closure(cause.nodes[0]) for cause in frozen):
            continue
        yield Hit(
            message=f"{script.at(found.sampler)} builds a sampler that shuffles, {script.quote(found.sampler)}, the "
            f"training loop runs several times, and {found.says}",
            hint=found.hint,
            where=(script.location(found.where),),
            fix=found.fix,
        )
    if not script.joins_group or script.training.framework:
        return
    for cause in (
        *cycled_loaders(script),
        *(c for loader in script.training.loaders() for c in stale_copies(script, loader)),
    ):
        yield Hit(message=cause.says, hint=cause.hint, where=lines(script, cause.nodes))


def check_run(evidence: Evidence) -> Observation:
    """Flag ranks that met their samples in the same order in two or more epochs."""
    from grader.checks.run.data.index_contents import dealt_again
    from grader.checks.run.data.repeated_orders import dealt_once, never_renewed, repeated_epochs
    from grader.checks.run.data.replayed_batches import given_besides, replayed_batches, replayed_hit

    reasons: list[str] = []
    renewed: list[str] = []
    if replayed := replayed_batches(evidence):
        return flagged(replayed_hit(evidence.script, replayed))
    told = {rank.rank: dealt_again(rank) for rank in evidence.trace.ranks}
    for stream in evidence.ledger.training:
        # Equal indices are other samples where a data set deals them out itself, anew in each epoch.
        orders = {
            r: repeated_epochs(stream.shards(r))
            for r in stream.ranks
            if stream.hashed or told[r] is not False
        }
        repeated = {rank: numbers for rank, numbers in orders.items() if numbers}
        if repeated:
            return flagged(_hit(evidence.script, stream, repeated))
        if dealt_once(evidence.ledger, stream, told):
            return flagged(_dealt_hit(evidence.script, stream, asked=evidence.expected.new_shares))
        if not stream.hashed and all(s.in_order for s in stream.shards(stream.ranks[0])):
            again = [rank for rank in stream.ranks if told[rank]]
            stale = _stale(evidence.script, stream) if again else None
            if stale is not None:
                return flagged(_stale_hit(evidence.script, stream, stale, again))
            mixed, asked = may_mix(evidence.script), evidence.expected.new_shares
            if asked and never_renewed(stream, told, mixed=mixed):
                return flagged(_never_renewed_hit(evidence.script, stream))
            if evidence.ledger.alike is False or False in told.values():
                _chosen_by_data_set(again, renewed, reasons)
                continue
            if asked and mixed and never_renewed(stream, told, mixed=False):
                reasons.append(
                    "Indices rose alike in each epoch; whether they stood for other samples, is not seen."
                )
                continue
        _clean(stream, renewed, reasons)
    besides = max((given_besides(rank) for rank in evidence.trace.ranks), default=0)
    if renewed and besides and len(evidence.ledger.training[0].epochs) == 1:
        return not_observable(
            f"After its one pass, {count(besides, 'batch', 'batches')} came from elsewhere."
        )
    if renewed:
        return verified(renewed[0])
    return not_observable(reasons[0] if reasons else "No training epoch was seen.")


def _stale(script: Script, stream: Stream) -> CauseInText | None:
    loader = loader_at(script, stream.site)
    return next(iter(stale_copies(script, loader)), None) if loader is not None else None


def _stale_hit(script: Script, stream: Stream, stale: CauseInText, again: list[int]) -> Hit:
    return Hit(
        message=f"{ranks(again)} met the same samples in the same order in each of {count(len(stream.epochs), 'epoch')}"
        f". {stale.says} Every epoch repeats the first one's batches.",
        hint=stale.hint,
        where=lines(script, stale.nodes),
        ranks=tuple(again),
    )


def _chosen_by_data_set(again: list[int], renewed: list[str], reasons: list[str]) -> None:
    """Of indices that only rise, in a data set that chooses by itself what they stand for."""
    if again:
        reasons.append(
            "The data set deals the samples out itself, alike in each epoch; whether it shuffles, is not seen."
        )
    else:
        renewed.append(
            "The data set deals the samples out itself: its numbers stood for others in other epochs."
        )


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


def _never_renewed_hit(script: Script, stream: Stream) -> Hit:
    drawn = count(stream.shards(stream.ranks[0])[0].num_samples, "sample")
    return Hit(
        message=f"{ranks(stream.ranks)} met the same samples in the same, rising order in each of "
        f"{count(len(stream.epochs), 'epoch')} ({drawn} on rank {stream.ranks[0]}): "
        f"{at(stream.site, 'the training loop')} shuffles nothing, so no epoch deals the samples out anew.",
        hint=dealt_anew(script, stream.site),
        where=(*lines(script, own_cuts(script, stream.site)), *place(stream.site)),
        ranks=tuple(stream.ranks),
    )


def _clean(stream: Stream, renewed: list[str], reasons: list[str]) -> None:
    longest = max((stream.shards(rank) for rank in stream.ranks), key=len)
    if len(longest) < 2:
        if stream.hashed or longest[0].openings > 1:
            seen = "No fed sample came up twice" if stream.hashed else "Every step began a new iterator"
            reasons.append(f"{seen}, so where an epoch ends is not known.")
        elif longest[0].exhausted is None:
            reasons.append("The run ended within its first epoch, so there was no second order to compare.")
        else:
            renewed.append("There was one pass over the training set, so no second order was needed.")
    elif any(s.samples is None for s in longest):
        reasons.append("The training loader does not tell which samples it drew.")
    elif all(s.in_order for s in longest):
        renewed.append(
            f"{count(len(longest), 'epoch')} ran in the data set's own order: nothing was shuffled, "
            "so the shares were never dealt anew, and no order was lost."
        )
    else:
        each = f"Each of {count(len(longest), 'epoch')}" if stream.exact else "Each epoch"
        renewed.append(f"{each} brought its samples in a new order.")


def _hit(script: Script, stream: Stream, repeated: dict[int, list[int]]) -> Hit:
    loader = loader_at(script, stream.site)
    rank, numbers = next(iter(repeated.items()))
    told = {s.sampler_epoch for s in stream.shards(rank)}
    missed = list(missed_epochs(script, loader, changes=len(told - {None}) > 1))
    late = any(m.late for m in missed)
    said = [] if late else list(check_source(script))
    frozen = [*frozen_orders(script, loader), *drawn_once(script, loader)]
    sown = [] if said or frozen else [s for s in own_seeds(script, stream.site) if not takes_epoch(script, s)]
    seeds = lines(script, sown)
    missed = [] if said or seeds or frozen else missed
    drawn = orders_read(script)[:1] if stream.hashed else []
    shard = stream.shards(rank)[numbers[0]]
    sampler = shard.loader.sampler if shard.loader else ""
    cause = ""
    if sampler == "DistributedSampler" and len(told) == 1 and None not in told:
        cause = (
            f"The `DistributedSampler` was at epoch {told.pop()} each time: `set_epoch` did not reach it. "
        )
    cause = missed[0].says if missed and (loader is not None or cause) else cause
    cause = f"{frozen[0].says.rstrip()} " if frozen else cause
    return Hit(
        message=(
            f"{ranks(repeated)} met the same samples in the same order in {epochs(numbers)} "
            f"({count(shard.num_samples, 'sample')} each). {cause}{'' if late else _REPEATS}"
        ),
        hint=said[0].hint
        if said
        else frozen[0].hint
        if frozen
        else seeded_by_epoch(script, sown[0])
        if seeds
        else missed[0].hint
        if missed
        else untold(script, loader)
        or (divided(script, drawn[0] if drawn else None) if stream.hashed else TELL),
        where=(
            *(
                said[0].where
                if said
                else lines(script, frozen[0].nodes)
                if frozen
                else seeds or lines(script, drawn)
            ),
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
