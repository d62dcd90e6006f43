"""A metric of one rank's share is reported as if it were the whole set's.

## What it finds
A validation set that is divided among ranks, with no collective that brings the ranks' counts together afterwards.

## Why it matters
Each rank then knows the score of its own part only. The number that rank 0 prints is measured on a k-th of the set:
noisier than it looks, different with every number of ranks, and the wrong thing to choose the best checkpoint by.

## Example
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("gloo")
model = DistributedDataParallel(build_model())
train(model)
val_loader = DataLoader(val_set, batch_size=256, sampler=DistributedSampler(val_set, shuffle=False))
model.eval()
correct = total = 0
with torch.no_grad():
    for images, labels in val_loader:
        correct += (model(images).argmax(dim=1) == labels).sum().item()
        total += len(labels)
if dist.get_rank() == 0:
    print(f"validation accuracy {correct / total:.3f}")
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
train(model)
val_loader = DataLoader(val_set, batch_size=256, sampler=DistributedSampler(val_set, shuffle=False))
model.eval()
counts = torch.zeros(2)
with torch.no_grad():
    for images, labels in val_loader:
        counts[0] += (model(images).argmax(dim=1) == labels).sum()
        counts[1] += len(labels)
dist.all_reduce(counts)  # sums of all ranks
if dist.get_rank() == 0:
    print(f"validation accuracy {(counts[0] / counts[1]).item():.3f}")
dist.destroy_process_group()
```

## How it is seen
In the run, by the samples that each rank's validation loader delivered and the collectives that ran between a
validation pass and the next training step. The same samples on every rank, or all on rank 0 alone, need no collective;
it is told by which samples they are, not by how many. In the source, by a divided validation loader, or one that
Accelerate or Fabric divides, with no reduction or gathering of what it counts; under Lightning's `Trainer`, by a
validation step that logs its own value without `sync_dist=True` (as a hint where no number of devices is written).
What one rank says above a later reduction counts, too; files that ranks leave and one reads, once all have met, are as
good as a reduction. Of training a sum over the length of the whole set, a rate that one rank says for all, and the
ratio of sums that one tensor holds are hints.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from grader.checks.phrases import at, count, first_known, place, ranks, told_once
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.collectives.dropped_results import kept, kept_by
from grader.checks.source.data.loader_sharding import Shared
from grader.checks.source.files.rank_files import read_too_early, read_when_there
from grader.checks.source.libraries.lightning_modules import logged_apart, told_devices
from grader.checks.source.metrics.count_fixes import brought_together, too_small
from grader.checks.source.metrics.unreduced_counts import Unreduced, share_as_whole, unreduced
from grader.checks.source.script import Script
from grader.checks.source.training_loops import Draw
from grader.model.finding import Location, Severity
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.checks.run.data.sample_ledger import Stream
    from grader.checks.run.metrics.validation_passes import Parts
    from grader.model.trace import Collective

SEVERITY = Severity.WARNING
NEEDS = Precondition.GROUP
_REDUCE = "`dist.all_reduce(counts)` with `counts = torch.tensor([correct, total])`"


def check_source(script: Script) -> Iterable[Hit]:
    """Flag counts of a divided validation loader that are used without bringing the ranks' counts together."""
    training = script.training
    yield from _logged_apart(script)
    if not script.joins_group or script.frameworks.opaque or read_when_there(script):
        return
    for draw in training.draws:
        meant = "evaluates" if draw.evaluates else "trains"
        shared = [x for x in draw.loaders if script.sharding.of(x) is Shared.YES]
        divided = [x for x in shared if getattr(training.roles(x), meant)]
        if not getattr(draw, meant) or not divided or len(divided) < len(draw.loaders):
            continue
        counted = script.reductions.counted(draw)
        found = (unreduced if draw.evaluates else share_as_whole)(script, draw, counted)
        if found is not None:
            yield _share_alone(script, draw, counted, divided[0], found)


def _share_alone(script: Script, draw: Draw, counted: set[str], loader: ast.Call, found: Unreduced) -> Hit:
    use, later = found.use, found.later
    by = script.frameworks.prepared.get(loader, loader)  # the framework's own call, or the one that builds it
    lines, fix = brought_together(script, draw, counted, use) if later is None else ("", None)
    lacks = "No collective brings the ranks' counts together"
    if later is not None:
        lacks = f"The ranks' counts are brought together only further down ({script.at(later)})"
    return Hit(
        message=f"{script.at(use)} uses what the loop at {script.at(draw.loop)} counted over this rank's share of "
        f"the {'training' if draw.trains else 'validation'} set ({script.at(by)} divides it): {script.quote(use)}. "
        f"{lacks}, so the metric is that of one share only." + too_small(script, use, counted),
        hint=_hint_for(script, lines or _REDUCE)
        if later is None
        else f"Put it below {script.at(later)}, and say there what the reduction gave.",
        where=(script.location(use),),
        fix=fix if draw.evaluates else None,
        severity=None if draw.evaluates else Severity.HINT,
    )


def _hint_for(script: Script, lines: str) -> str:
    words = script.frameworks.words
    if words is None:
        return f"Sum numerator and count over all ranks before dividing: {lines}."
    return (
        f"Bring the ranks' parts together before counting: {words.joined}. It has to be called on every rank."
    )


def _logged_apart(script: Script) -> Iterable[Hit]:
    """`self.log` in a validation step of Lightning, of a value that each rank worked out for itself."""
    found = list(logged_apart(script))
    if found:
        first = found[0]
        yield Hit(
            message=f"{script.at(first)} logs in each rank's own validation what that rank alone worked out: "
            f"{script.quote(first)}. Without `sync_dist=True` the figure that is shown is rank 0's, over its share of "
            "the set.",
            hint="Give it `sync_dist=True`, or log a metric of torchmetrics, which brings its counts together itself.",
            where=tuple(script.location(c) for c in found),
            severity=None if told_devices(script) else Severity.HINT,
        )


def check_run(evidence: Evidence) -> Observation:
    """Flag divided validation passes whose parts were never put together."""
    from grader.checks.run.metrics import validation_passes as passes
    from grader.checks.run.metrics.reported_counts import above_one, counted_instead

    good: list[str] = []
    for stream in evidence.ledger.validation:
        parts = passes.divided_passes(evidence.ledger, stream)
        if not parts:
            whole = evidence.ledger.layout.with_partners(passes.whole_ranks(evidence.ledger, stream))
            if whole:
                most = max((s.num_samples for epoch in stream.epochs for s in epoch.shards), default=0)
                drawn = f"the same {count(most, 'sample')}" if len(whole) > 1 else "the whole set"
                good.append(f"{ranks(whole)} validated on {drawn}, so there was nothing to reduce.")
            continue
        met = passes.combining(evidence.trace, stream, evidence.script)
        joined = kept(evidence.script, met)
        written = passes.through_files(evidence.trace, passes.begins(evidence.trace, stream), evidence.script)
        if written and not joined:
            good.append(_together(f"in the files that {at(written)} writes"))
            continue
        if not joined and not evidence.finished and len(stream.epochs) < 2:
            # The collective that would have joined them may be the very one it stopped in.
            return not_observable(
                "The run ended before the parts of its first validation could be put together."
            )
        split = passes.apart(evidence.trace, stream, joined)
        if not joined or split:
            return flagged(
                _mended(evidence.script, _hit(evidence, stream, parts, split or met), split or met)
            )
        first = joined[0]
        own = [s.num_samples for s in parts[-1].epoch.shards]
        of_one = counted_instead(evidence, parts[-1].num_expected or 0, own)
        if of_one:
            followed = f"{of_one}, though `{first.name}` at {at(first.site)} is there"
            hit = above_one(evidence, stream, first) or _hit(evidence, stream, parts, joined, followed)
            return flagged(_mended(evidence.script, hit, joined))
        good.append(_together(f"by `{first.name}` at {at(first.site)}"))
    return verified(good[0]) if good else _without_loaders(evidence)


def _together(how: str) -> str:
    return f"Validation was divided among ranks and put together {how}."


def _without_loaders(evidence: Evidence) -> Observation:
    """Batches that come from no loader: the model itself tells how many samples it was evaluated on."""
    from grader.checks.run.metrics.evaluation_passes import unseen
    from grader.checks.run.metrics.validation_passes import combined_after, evaluated, through_files

    total = evidence.num_validation
    told = evaluated(evidence.trace)
    # A few samples are a look at the model, not a validation.
    most = {rank: max(n for _, n in runs) for rank, runs in told.items()}
    if (
        not total
        or evidence.ledger.validation
        or max(most.values(), default=0) < 0.5 * total / len(evidence.trace.ranks)
    ):
        return unseen(evidence, "No complete validation pass was seen.")
    whole = [rank for rank, n in most.items() if n >= 0.9 * total]
    if whole:
        return verified(f"{ranks(whole)} validated on the whole set, so there was nothing to reduce.")
    begun = {rank: tuple(t for t, _ in runs) for rank, runs in told.items()}
    joined = kept(evidence.script, combined_after(evidence.trace, begun, evidence.script))
    if joined:
        return verified(_together(f"by `{joined[0].name}` at {at(joined[0].site)}"))
    written = through_files(evidence.trace, begun, evidence.script)
    if written:
        return verified(_together(f"in the files that {at(written)} writes"))
    site = first_known([e.site for r in evidence.trace.ranks for e in r.events("evaluation")])
    shares = ", ".join(f"rank {r}: {n:,}" for r, n in most.items())
    hit = _local(shares, total, at(site, "The validation loop"), place(site), most, len(begun[min(most)]))
    return flagged(_mended(evidence.script, hit, ()))


def _hit(
    evidence: Evidence,
    stream: Stream,
    parts: tuple[Parts, ...],
    met: tuple[Collective, ...],
    followed: str = "",
) -> Hit:
    from grader.checks.run.metrics.validation_passes import in_vain

    epoch = parts[-1].epoch
    counts = {s.rank: s.num_samples for s in epoch.shards}
    shares = ", ".join(f"rank {rank}: {n:,}" for rank, n in list(counts.items())[:8])
    where = at(stream.site, "The validation loader")
    lost = [in_vain(evidence.ledger.layout, call) for call in met]
    places = (*(place(met[0].site) if met else ()), *place(stream.site))
    total = parts[-1].num_expected or 0
    return _local(shares, total, where, places, counts, len(parts), followed or (lost or [_NOTHING])[0])


def _mended(script: Script, hit: Hit, met: tuple[Collective, ...]) -> Hit:
    """The same, saying how the collective, or the files that are there come to bring something together."""
    for early in read_too_early(script) if not met else ():
        parts, _, _ = hit.message.partition(f", and {_NOTHING}")
        where = told_once((*map(script.location, (early.read, early.write)), *hit.where))
        return replace(hit, message=f"{parts}. {early.says}", hint=early.hint, where=where)
    site = next((call.site for call in met if call.site is not None), None)
    hint, fix, nodes = kept_by(script, site) if site is not None else ("", None, ())
    where = told_once((*hit.where, *map(script.location, nodes)))
    return replace(hit, hint=hint, fix=fix, where=where) if hint else hit


_ADD_UP = (
    "Add up what is counted, such as correct predictions, and the samples over all ranks before dividing: "
    "`counts = torch.tensor([correct, total], dtype=torch.float64); dist.all_reduce(counts)`."
)
_NOTHING = "no reduction or gathering followed"


def _local(
    shares: str,
    total: int,
    where: str,
    places: tuple[Location, ...],
    counts: dict[int, int],
    passes: int,
    followed: str = _NOTHING,
) -> Hit:
    return Hit(
        message=(
            f"Each rank validated on a part of the set ({shares} of {count(total, 'sample')}) in "
            f"{count(passes, 'pass', 'passes')}, and {followed}. {where} divides the set, "
            "so the metric that is reported is that of one rank's part, not of the whole."
        ),
        hint=_ADD_UP if followed in (_NOTHING, "") else f"{_ADD_UP} Then read the figures out of `counts`.",
        where=places,
        ranks=tuple(sorted(counts)),
        details={"samples_by_rank": {str(rank): n for rank, n in counts.items()}, "passes": passes},
    )
