"""Every rank validates on the whole set.

## What it finds
A validation loop over an undivided set that all ranks run.

## Why it matters
The number is right, and all ranks know it without talking. But N ranks do the same work N times: the validation takes
as long as on one device, however many you add, and with each device more it is a larger part of the epoch.

## Example
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

dist.init_process_group("gloo")
model = DistributedDataParallel(build_model())
train(model)
val_loader = DataLoader(val_set, batch_size=256)
model.eval()
correct = 0
with torch.no_grad():
    for images, labels in val_loader:
        correct += (model(images).argmax(dim=1) == labels).sum().item()
accuracy = correct / len(val_set)
dist.destroy_process_group()
```

## Use instead
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset

dist.init_process_group("gloo")
model = DistributedDataParallel(build_model())
train(model)
part = Subset(val_set, range(dist.get_rank(), len(val_set), dist.get_world_size()))
val_loader = DataLoader(part, batch_size=256)
model.eval()
correct = torch.zeros(())
with torch.no_grad():
    for images, labels in val_loader:
        correct += (model(images).argmax(dim=1) == labels).sum()
dist.all_reduce(correct)  # the counts of all ranks
accuracy = correct.item() / len(val_set)
dist.destroy_process_group()
```

## How it is seen
In the source: an evaluated loader that nothing divides, in a loop without a test of the rank; a script that divides
some of its validation (and scores a small rest on all ranks) is left alone, and so are samples that are drawn at
random, which may be other ones on each rank. In the run: the validation samples that
each rank drew; where a data set is the rank's share itself, what models were given for equal indices tells that they
are other ones. It is advice: a small set costs little, and the result is the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import at, count, place, ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.data.loader_sharding import Shared
from grader.checks.source.script import Script
from grader.model.finding import Severity
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.HINT
NEEDS = Precondition.GROUP
EXPLAINED_BY = ("DIST004",)
_HINT = (
    "Give each rank its own part (`Subset(val_set, range(rank, len(val_set), world_size))`) and add up the counts of "
    "all ranks with `dist.all_reduce`."
)


def check_source(script: Script) -> Iterable[Hit]:
    """Flag validation loops over undivided sets that every rank runs."""
    training = script.training
    if not script.joins_group or script.frameworks.opaque or not (training.trains or training.wraps):
        return
    if script.meshes.in_parts is not None or script.meshes.by_hand:
        return  # ranks that hold parts of one model score the same samples
    found = []
    for draw in training.draws:
        evaluated = [x for x in draw.loaders if training.roles(x).evaluates]
        if not evaluated or not (draw.evaluates or draw.trains):
            continue
        shared = {script.sharding.of(x) for x in evaluated}
        if Shared.YES in shared:
            return  # some of the validation is divided: what is left is the rest of the set, or a small extra one
        whole = [x for x in evaluated if script.sharding.of(x) is Shared.NO]
        everywhere = script.guards.on_every_rank(draw.loop) and all(map(script.guards.on_every_rank, whole))
        if whole and Shared.UNKNOWN not in shared and everywhere:
            found.append((draw.loop, whole[0]))
    if not found:
        return
    loop, loader = found[0]
    yield Hit(
        message=f"{script.at(loop)} is run by every rank, over the whole set of {script.quote(loader)} "
        f"({script.at(loader)}): N ranks compute the same number N times. It is right, but it takes as long as on one "
        "device.",
        hint=_HINT,
        where=tuple(script.location(x) for x in dict.fromkeys(w for _, w in found)),
    )


def check_run(evidence: Evidence) -> Observation:
    """Flag validation streams that every rank went through in full."""
    from grader.checks.run.metrics.validation_passes import divided_passes, same_part, whole_ranks
    from grader.checks.run.metrics.validation_sets import scored_alike
    from grader.checks.run.models.replica_comparison import in_parts_by_hand

    good = ""
    for stream in evidence.ledger.validation:
        whole = whole_ranks(evidence.ledger, stream)
        if divided_passes(evidence.ledger, stream):
            return verified("Each rank validated on its own part of the set.")
        for part in same_part(evidence.ledger, stream)[:1]:
            scored = f"{part.epoch.num_distinct:,} of {part.num_expected:,} validation samples"
            return not_observable(f"{ranks(part.epoch.ranks)} all took the same part of the set, {scored}.")
        if len(whole) == evidence.ledger.num_shares > 1 and in_parts_by_hand(evidence.trace):
            return not_observable(
                f"{in_parts_by_hand(evidence.trace)}: those have to score the same samples."
            )
        if len(whole) > 1 and scored_alike(evidence.ledger, stream) is False:
            return not_observable(
                f"{ranks(whole)} were given other samples than each other for equal indices."
            )
        if len(whole) == evidence.ledger.num_shares > 1:
            shards = [s for e in stream.epochs for s in e.shards]
            samples = max((s.num_samples for s in shards), default=0)
            size = max((s.loader.size or 0 for s in shards if s.loader is not None), default=0)
            drawn = f"{samples:,} of {size:,} samples" if samples < size else count(samples, "sample")
            which = "the same part of the validation set" if samples < size else "the whole validation set"
            return flagged(
                Hit(
                    message=(
                        f"{ranks(whole)} each went through {which} ({drawn}) in "
                        f"{count(len(stream.epochs), 'pass', 'passes')}. {at(stream.site, 'Its loader')} does not "
                        "divide it: the metric is right, and computed once per rank."
                    ),
                    hint=_HINT,
                    where=place(stream.site),
                    ranks=whole,
                    details={"samples": samples, "passes": len(stream.epochs)},
                )
            )
        if whole:
            shared = evidence.ledger.layout.with_partners(whole)
            held = ", which hold parts of one model" if len(shared) > len(whole) else ""
            good = f"{ranks(shared)}{held or ' alone'}{',' if held else ''} validated on the whole set."
    return verified(good) if good else not_observable("No complete validation pass was seen.")
