"""Ranks step with gradients that were never averaged.

## What it finds
Optimizer steps at which ranks hold different gradients: a model that was never wrapped, a hand-written average that
does not run, a step under `no_sync`, or one rank that trains alone.

## Why it matters
Data-parallel training is one model trained by many: before each step all ranks average their gradients. Without that
each rank trains a model of its own on its own share of the data, and the one that is saved has learned from a fraction.

## Example
```python
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("gloo")
model = build_model()  # never wrapped
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, labels in DataLoader(train_set, batch_size=64, sampler=DistributedSampler(train_set)):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
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
for images, labels in DataLoader(train_set, batch_size=64, sampler=DistributedSampler(train_set)):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
```

## How it is seen
In the run alone: each rank writes down sums over some gradients just before the optimizer steps, and the sums of all
ranks are compared step by step. With DDP they are equal to the bit. Ranks start with different random seeds, so equal
gradients are no accident; where a script seeds all ranks alike, equal gradients count only if there was something to
average them: a wrapper, or at least one collective per step. Sharded parameters (FSDP) differ by design and are not
judged.
"""

from __future__ import annotations

from grader.checks.quote import at, count, first_known, place, ranks
from grader.checks.rule import Hit, Look, flagged, unseen, verified
from grader.checks.seen import Seen
from grader.checks.steps import Comparison, Difference, compare_gradients, sharded, trainers
from grader.model.finding import Severity
from grader.model.run import Ending
from grader.model.trace import RankTrace, Site

SEVERITY = Severity.ERROR
EXPLAINED_BY = ("DIST001", "GRAD002", "GRAD003")
_MEETINGS = ("barrier", "monitored_barrier")


def check_trace(seen: Seen) -> Look:
    """Flag steps at which ranks held different gradients."""
    if seen.trace.world_size < 2:
        return unseen("Only one rank ran, so there was nothing to average.")
    if sharded(seen.trace):
        return unseen("Parameters are sharded among ranks, so gradients differ by design.")
    active = trainers(seen.trace)
    if len(active) == 1 and seen.record.ending is Ending.COMPLETED:
        return flagged(_alone(seen, active[0]))
    if len(active) < 2:
        return unseen("No optimizer step was seen on two ranks.")
    found = compare_gradients(seen.trace)
    if found.difference is not None:
        return flagged(_hit(active, found, found.difference))
    if not found.num_steps:
        return unseen("No step was seen at which two ranks held gradients of the same tensors.")
    if all(_sent_nothing(r) for r in active):
        return flagged(_twins(active, found))
    return verified(
        f"Gradients of {len(active)} ranks were equal at all {count(found.num_steps, 'step')} compared, "
        f"the last being step {found.last}."
    )


def _hit(active: tuple[RankTrace, ...], found: Comparison, difference: Difference) -> Hit:
    site = first_known([s.site for s in active[0].steps])
    a, b = difference.ranks
    x, y = difference.sums[0][0], difference.sums[1][0]
    pair = f"the sum of `{difference.names[0]}`'s gradient was {_number(x)} on rank {a} and {_number(y)} on rank {b}"
    wrapped = any(w.kind in ("ddp", "fabric", "accelerate") for r in active for w in r.wraps)
    unsynced = any(s.synced is False for r in active for s in r.steps)
    hint = "Wrap the model once it is on its device, `model = DistributedDataParallel(model)`, and train through it."
    if wrapped and unsynced:
        hint = "Leave `no_sync()` before the last backward pass of each step, so that this one averages the gradients."
    elif wrapped:
        hint = "Call the wrapped model itself in the training loop, and step only parameters that it holds."
    return Hit(
        message=(
            f"{ranks((a, *found.ranks))} held different gradients at {found.num_different:,} of "
            f"{count(found.num_steps, 'compared step')}: at step {difference.step} {pair}. "
            f"{at(site, 'The optimizer')} steps with them, so each rank trains a model of its own."
        ),
        hint=hint,
        where=place(site),
        ranks=(a, *found.ranks),
        details={
            "first_step": difference.step,
            "tensors": list(difference.names[:8]),
            f"sums_rank_{a}": list(difference.sums[0][:8]),
            f"sums_rank_{b}": list(difference.sums[1][:8]),
            "steps_compared": found.num_steps,
            "steps_different": found.num_different,
        },
    )


def _alone(seen: Seen, only: RankTrace) -> Hit:
    site = first_known([s.site for s in only.steps])
    return Hit(
        message=(
            f"Rank {only.rank} took all {count(len(only.steps), 'optimizer step')}; the other "
            f"{count(seen.trace.world_size - 1, 'rank')} took none, so nothing was averaged. "
            f"{at(site, 'The optimizer')} is reached by one rank alone: the others' devices were idle."
        ),
        hint="Let every rank run the training loop on its share of the data; keep only printing and saving to rank 0.",
        where=place(site),
        ranks=(only.rank,),
        details={"steps_by_rank": {str(r.rank): len(r.steps) for r in seen.trace.ranks}},
    )


def _sent_nothing(rank: RankTrace) -> bool:
    """True where nothing can have averaged: no wrapper, and fewer collectives in the whole run than optimizer steps."""
    told = next((e.fields.get("sequence") for e in rank.events("end")), None)
    if rank.wraps or not isinstance(told, int):
        return False
    by_name: dict[tuple[str, Site | None], int] = {}
    for call in rank.collectives:
        by_name[call.name, call.site] = max(call.n, by_name.get((call.name, call.site), 0))
    # Meetings carry nothing; a barrier may count as more than one collective below, never as less.
    meetings = sum(n for (name, _), n in by_name.items() if name in _MEETINGS)
    return max(told, sum(by_name.values())) - meetings < len(rank.steps)


def _twins(active: tuple[RankTrace, ...], found: Comparison) -> Hit:
    site = first_known([s.site for s in active[0].steps])
    return Hit(
        message=(
            f"{ranks(r.rank for r in active)} held equal gradients at {count(found.num_steps, 'compared step')}, but "
            "nothing went from one to another: no wrapper, and fewer collectives than optimizer steps. They were equal "
            f"because every rank did the very same work. {at(site, 'The optimizer')} takes the step that one rank "
            "alone would take, and with different samples each would train a model of its own."
        ),
        hint="Wrap the model once it is on its device, `model = DistributedDataParallel(model)`, train through it, "
        "and give each rank samples of its own.",
        where=place(site),
        ranks=tuple(r.rank for r in active),
        details={"steps_compared": found.num_steps, "steps_different": 0},
    )


def _number(value: float | None) -> str:
    return "missing" if value is None else f"{value:.6g}"
