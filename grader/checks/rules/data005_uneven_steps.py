"""Ranks run different numbers of steps.

## What it finds
Epochs in which one rank has more batches than another, so that one rank is done while the other still waits for its
gradients.

## Why it matters
Every backward pass of a DDP model is a meeting of all ranks. A rank with one batch more waits for partners that never
come: the run hangs, or its gradients meet those of another step.

## Example
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset

dist.init_process_group("gloo")
rank = dist.get_rank()
model = DistributedDataParallel(build_model())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
bounds = [0, 40_000, 60_000]
shard = Subset(train_set, range(bounds[rank], bounds[rank + 1]))
for images, labels in DataLoader(shard, batch_size=64, shuffle=True):
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
sampler = DistributedSampler(train_set, shuffle=True)  # pads, so that all ranks get the same number
for images, labels in DataLoader(train_set, batch_size=64, sampler=sampler):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
dist.destroy_process_group()
```

## How it is seen
In the run, by batches and optimizer steps of each rank, also when it ended in a deadlock. Ranks that take no step at
all (one that only serves) don't count, and neither do uneven inputs under `join()`, after which all replicas are
equal.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from grader.checks.phrases import at, count, listed, place
from grader.checks.phrases import ranks as ranks_of
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.data.rank_dependent_shares import bounds as literal_bounds
from grader.checks.source.data.rank_dependent_shares import differs, last_takes_rest, made_apart
from grader.checks.source.data.uneven_rounds import equal_rounds, runs_dry_alone, uneven_rounds
from grader.checks.source.script import Script
from grader.model.finding import Severity
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.checks.run.data.epoch_shards import EpochShards
    from grader.checks.run.data.sample_ledger import Stream
    from grader.checks.run.endings.left_loops import UnevenLoop
    from grader.model.trace import Trace

SEVERITY = Severity.ERROR
NEEDS = Precondition.GROUP
EXPLAINED_BY = ("DIST001", "DIST003", "DIST008")
_WHY = (
    "Every backward pass of a DDP model is a meeting of all ranks, "
    "so a rank with more steps waits for partners that never come."
)
_EVEN = (
    "Give all ranks the same number of batches: `DistributedSampler` pads by itself; with shards of your own, "
    "cut them to equal length, or stop all ranks at the smallest count (`all_reduce` with `ReduceOp.MIN`)."
)


def check_source(script: Script) -> Iterable[Hit]:
    """Flag lengths that differ by rank: batch sizes, shards, numbers of steps, exits on some ranks only."""
    if not script.joins_group or script.training.framework or _evens_out(script):
        return
    for node, text in uneven_rounds(script):
        yield _rounds_hit(script, node, text)
    for loader in script.training.loaders():
        if script.training.roles(loader).trains:
            yield from _unequal_shards(script, loader)


def _rounds_hit(script: Script, node: ast.AST, text: str) -> Hit:
    written, fix = equal_rounds(script, node)
    hit = _source_hit(script, node, text)
    return replace(hit, hint=f"Write `{written}` there, the same on every rank.", fix=fix) if written else hit


def _unequal_shards(script: Script, loader: ast.Call) -> Iterable[Hit]:
    size = script.given(loader, "batch_size")
    if size is not None and differs(script, size):
        yield _source_hit(
            script,
            loader,
            f"{script.at(loader)} takes another batch size on each rank: {script.quote(size)}.",
        )
        return
    data = [script.argument(loader, name) for name in ("dataset", "sampler")]
    nodes = [n for d in data if d is not None for n in script.values.closure(d)]
    bounds = literal_bounds(script, nodes)
    if bounds:
        yield _source_hit(
            script,
            loader,
            f"{script.at(loader)} reads shards of {listed(bounds)} samples, unequal by the script's own table.",
        )
    elif any(last_takes_rest(script, n) for n in nodes) or made_apart(script, nodes):
        yield _source_hit(
            script,
            loader,
            f"{script.at(loader)} reads a shard that is cut by another rule on some ranks than on others, so it "
            f"may be longer.",
            Severity.HINT,
        )


def _evens_out(script: Script) -> bool:
    """`join()` lets ranks run dry one by one; a minimum over all ranks cuts them to one length."""
    return runs_dry_alone(script) or bool(script.mentioned("MIN"))


def _source_hit(script: Script, node: ast.AST, seen_text: str, severity: Severity | None = None) -> Hit:
    return Hit(message=f"{seen_text} {_WHY}", hint=_EVEN, where=(script.location(node),), severity=severity)


def check_run(evidence: Evidence) -> Observation:
    """Flag epochs, or whole runs, in which ranks took different numbers of steps."""
    from grader.checks.run.data.dealt_rounds import dealt_rounds
    from grader.checks.run.endings.early_leavers import skipped_step
    from grader.checks.run.endings.left_loops import uneven_loop

    ranks = evidence.trace.trainers
    completed = evidence.finished
    for stream in evidence.ledger.training:
        uneven = next((e for e in stream.epochs if _is_uneven(e) or _waits_alone(evidence, e)), None)
        if uneven is not None and not (completed and _evened(evidence.trace)):
            return flagged(_epoch_hit(evidence, stream, uneven))
    if len(ranks) < 2:
        return not_observable("Fewer than two ranks took optimizer steps.")
    steps = {r.rank: len(r.steps) for r in ranks}
    if not completed:
        apart = uneven_loop(evidence)
        if apart is not None:
            return flagged(_loop_hit(evidence, apart))
        if (dealt := dealt_rounds(evidence)) is not None:
            return flagged(dealt.hit(_WHY))
        # Epochs that all ranks went through to the end count, whatever happened later.
        whole = [
            e
            for s in evidence.ledger.training
            for e in s.epochs
            if e.own and e.complete and len(e.shards) > 1
        ]
        if whole:
            return verified(
                f"All ranks had equal numbers of batches in {count(len(whole), 'complete epoch')}."
            )
        return not_observable("The run ended within its first epoch, where ranks stop at different steps.")
    if len(set(steps.values())) == 1:
        return verified(
            f"All {len(ranks)} training ranks took {count(min(steps.values()), 'optimizer step')}."
        )
    if _evened(evidence.trace):
        return verified(
            f"Ranks took {listed(steps.values())} steps, and their replicas were equal all the same, as under `join()`."
        )
    left = skipped_step(evidence)
    if left is not None and left.met:
        return verified(
            f"All ranks had equal numbers of batches and came to every collective; {ranks_of(left.ranks).lower()} "
            f"{left.sentence}."
        )
    return flagged(_run_hit(evidence, steps))


def _is_uneven(epoch: EpochShards) -> bool:
    """True when one rank's loader ran dry while another's had more batches to give."""
    if not epoch.own or len(epoch.shards) < 2:
        return False
    dry = [s.num_batches for s in epoch.shards if s.exhausted]
    return bool(dry) and max(s.num_batches for s in epoch.shards) > min(dry)


def _waits_alone(evidence: Evidence, epoch: EpochShards) -> bool:
    """True when a rank of a deadlock waits inside the wrapper, in a batch that another rank's shard does not have.

    The other rank has taken all its steps, and so has this one: what it waits in belongs to one batch more.
    """
    from grader.checks.run.optimisation.step_moments import is_one_further
    from grader.model.run import Ending

    dry = [s for s in epoch.shards if s.exhausted]
    if evidence.record.ending is not Ending.DEADLOCKED or not epoch.own or not dry:
        return False
    waiting = {r.rank for r in evidence.record.ranks if r.waiting and r.waiting.operation.startswith("DDP ")}
    least = min(s.num_batches for s in dry)
    in_it = [s for s in epoch.shards if s.exhausted is None and s.rank in waiting]
    return any(s.num_batches + is_one_further(evidence.rank(s.rank)) > least for s in in_it)


def _evened(trace: Trace) -> bool:
    """True when steps are equal after all (a cap by the script), or the replicas are at the end (`join()`)."""
    from grader.checks.run.models.replica_comparison import compare_finals, equal_in_each_pass

    ranks = trace.trainers
    if len(ranks) < 2:
        return False
    steps = {len(r.steps) for r in ranks}
    return (
        len(steps) == 1
        or all(compare_finals(ranks[0], other) == () for other in ranks[1:])
        or equal_in_each_pass(trace)
    )


def _epoch_hit(evidence: Evidence, stream: Stream, epoch: EpochShards) -> Hit:
    from grader.model.run import Ending

    batches = {s.rank: s.num_batches for s in epoch.shards}
    fewest, most = min(batches, key=lambda r: batches[r]), max(batches, key=lambda r: batches[r])
    even = batches[fewest] == batches[most]
    if even:
        # A deadlock: the batch in which the rank waits is one more than it got through.
        fewest = next(s.rank for s in epoch.shards if s.exhausted)
        most = next(s.rank for s in epoch.shards if not s.exhausted)
        batches[most] += 1
    per_rank = listed(f"{b:,} on rank {r}" for r, b in batches.items())
    waiting = ""
    if evidence.record.ending is Ending.DEADLOCKED:
        waiting = (
            f" Rank {fewest} has left its loop; rank {most} waits for it in batch {batches[fewest] + 1:,}."
        )
    return _hit(
        f"In epoch {epoch.number} ranks had different numbers of batches: {per_rank}. "
        f"{at(stream.site, 'The training loop')} gives the ranks unequal shards.{waiting}",
        stream,
        epoch.ranks,
        {"epoch": epoch.number, "batches_by_rank": {str(r): b for r, b in batches.items()}},
    )


def _loop_hit(evidence: Evidence, apart: UnevenLoop) -> Hit:
    from grader.checks.run.endings.left_loops import held_ranks

    hit = _rounds_hit(evidence.script, apart.node, apart.sentence)
    waiting = [rank.rank for rank in held_ranks(evidence) if rank.rank not in apart.gone]
    left = f"{ranks_of(apart.gone)} had left it; {ranks_of(waiting).lower()} waited in it."
    return replace(hit, message=f"{apart.sentence} {left} {_WHY}", ranks=apart.gone)


def _run_hit(evidence: Evidence, steps: dict[int, int]) -> Hit:
    stream = next(iter(evidence.ledger.training), None)
    per_rank = listed(f"{n:,} on rank {r}" for r, n in steps.items())
    return _hit(
        f"Ranks took different numbers of optimizer steps: {per_rank}.",
        stream,
        tuple(steps),
        {"steps_by_rank": {str(r): n for r, n in steps.items()}},
    )


def _hit(seen_text: str, stream: Stream | None, ranks: tuple[int, ...], details: dict[str, object]) -> Hit:
    return Hit(
        message=(
            f"{seen_text} Every backward pass of a DDP model is a meeting of all ranks, "
            "so a rank with more steps waits for partners that never come."
        ),
        hint=(
            "Give all ranks the same number of batches: `DistributedSampler` pads by itself; with shards of "
            "your own, cut them to equal length, or stop all ranks at the smallest count (`all_reduce` with "
            "`ReduceOp.MIN`)."
        ),
        where=place(stream.site) if stream else (),
        ranks=ranks,
        details=details,
    )
