"""Every rank trains on the whole data set.

## What it finds
A training loader that gives each rank all samples instead of a share of them.

## Why it matters
Data-parallel training divides each epoch: with k ranks every rank sees a k-th of the samples. Without that, k
devices do the same work k times; an epoch costs as much as on one device and teaches nothing more.

## Example
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

dist.init_process_group("gloo")
model = DistributedDataParallel(build_model())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(train_set, batch_size=64, shuffle=True)
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
In the run, by the indices that each rank's training loader delivered in each epoch, whatever sampler made them; where
there are no indices, by hashes of the samples fed to the model. Ranks that drew different samples, and whose models
were given the same ones in every step looked at, train on one rank's batch. In the source, by a shuffled training
loader without a sampler in a script that divides its data nowhere, by one that Accelerate or Fabric is in use for and
never gets, or by batches that are drawn at random places of a file after one seed for all ranks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from grader.checks.phrases import at, count, epochs, place, ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.calls.calls_from_elsewhere import entry_on_every_rank, given_from_elsewhere
from grader.checks.source.causes import lines
from grader.checks.source.collectives.joined_groups import in_group
from grader.checks.source.data.epoch_numbers import drawn_again, tell_epoch
from grader.checks.source.data.equal_batches import equal_batches
from grader.checks.source.data.loader_sharding import Shared
from grader.checks.source.data.orders_by_hand import orders_read, rows_of_own, whole_order
from grader.checks.source.data.sampler_advice import DIVIDE, divided, for_one_rank
from grader.checks.source.data.share_causes import loader_at
from grader.checks.source.data.short_advances import short_advances
from grader.checks.source.ranks.written_ranks import held_name
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.training_loops import SAMPLER
from grader.model.finding import Severity
from grader.model.fix import Fix
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.checks.run.data.epoch_partition import EpochPartition
    from grader.checks.run.data.epoch_shards import EpochShards
    from grader.checks.run.data.sample_ledger import Stream
    from grader.checks.run.models.parallel_layout import Layout

SEVERITY = Severity.ERROR
NEEDS = Precondition.RANKS
EXPLAINED_BY = ("DIST004",)
_UNLESS = " It is right only where the caller, which is in another file, hands in each rank's share."
_DIVIDE_STREAM = (
    "Let the stream itself take its share: in `__iter__`, `itertools.islice(rows, rank * workers + worker, None, "
    "world_size * workers)` with `rank` from `dist.get_rank()` and `worker` from `torch.utils.data.get_worker_info()`."
)


def check_source(script: Script) -> Iterable[Hit]:
    """Flag training loaders whose data nothing in the text divides among ranks."""
    training = script.training
    yield from _kept_from_framework(script)
    if not script.joins_group or training.framework:
        return
    if script.meshes.may_share_batches:  # ranks that hold parts of one model need the same samples
        return
    for one in equal_batches(script):
        yield Hit(f"{script.at(one.draw)} {one.says}", one.hint, lines(script, (one.draw, one.seed)))
    held = script.meshes.in_parts
    among = "the ranks" if held is None else f"the copies of the model that {script.at(held)} divides"
    given = {s for loader in training.loaders() for s in training.distributed_samplers(loader)}
    for loader in training.loaders():
        unknown = _given_whole(script, loader)
        whole = unknown or script.sharding.of(loader) is Shared.NO
        if not whole or not training.roles(loader).trains or script.guards.alone(loader):
            continue
        idle = [s for s in script.calls(SAMPLER) if s not in given]
        unused = f" The `DistributedSampler` built at {script.at(idle[0])} reaches no loader." if idle else ""
        yield Hit(
            message=f"{script.at(loader)} builds the training loader, {script.quote(loader)}, and nothing "
            f"divides its samples among {among}.{unused} Every rank then trains on the whole set: N devices "
            "do the same work N times." + (_UNLESS if unknown else ""),
            hint=divided(script, loader) if script.sharding.iterable(loader) is None else _DIVIDE_STREAM,
            where=(script.location(loader),),
            fix=_fix(script, loader, idle),
            severity=Severity.HINT if unknown else None,
        )


def _given_whole(script: Script, loader: ast.Call) -> bool:
    """Whether all of what another file hands in is shuffled; that it is a share already, nothing here tells."""
    dataset = script.given(loader, "dataset")
    if dataset is None or script.training.samplers(loader):
        return False
    if script.values.constant(script.argument(loader, "shuffle")) is not True:
        return False
    return given_from_elsewhere(script, dataset) and entry_on_every_rank(script, loader) is not None


def _kept_from_framework(script: Script) -> Iterable[Hit]:
    """Training loaders that a framework divides as soon as it gets them, and doesn't get, or gives back to nobody."""
    words = script.frameworks.words
    if words is None or not script.frameworks.all_told or not script.frameworks.prepared:
        return
    for loader in script.training.loaders():
        taken = script.frameworks.prepared.get(loader)
        lost = taken is not None and script.frameworks.thrown_away(taken)
        role = script.training.roles(loader)
        if not role.trains or (taken is not None and not lost) or script.sharding.of(loader) is not Shared.NO:
            continue
        what = f"what {script.at(taken)} gives back is thrown away" if taken else "it is not prepared"
        method = "prepare" if "prepare" in words.loaders else next(iter(words.loaders))
        yield Hit(
            message=f"{script.at(loader)} builds the training loader, {script.quote(loader)}, which {words.name} would "
            f"divide among the ranks, but {what}. Every rank then trains on the whole set: N devices do the same work "
            "N times.",
            hint=f"Train with what it gives back: `loader = {words.called}.{method}(loader)`.",
            where=(script.location(loader),),
        )


def _fix(script: Script, loader: ast.Call, idle: list[ast.Call]) -> Fix | None:
    """A sampler that divides the set: one that is there already and goes unused, else a new one."""
    edits = Edits(script)
    dataset, sampler = script.argument(loader, "dataset"), script.argument(loader, "sampler")
    plain = isinstance(dataset, ast.Name | ast.Attribute) and script.sharding.iterable(loader) is None
    if (
        not plain
        or dataset is None
        or not in_group(script, loader)
        or script.argument(loader, "batch_sampler")
    ):
        return None
    same = [n for s in idle if ast.unparse(s.args[0] if s.args else s) == ast.unparse(dataset)
            if (n := held_name(script, s, loader))]  # fmt: skip
    if idle and not same:
        return None
    made = same[0] if same else f"{edits.name(SAMPLER, loader)}({ast.unparse(dataset)})"
    if sampler is None:
        edits.exchange(loader, "shuffle", "sampler", made)
    elif (
        isinstance(sampler, ast.Call)
        and script.names.qualified(sampler.func) == "torch.utils.data.RandomSampler"
    ):
        edits.replace(sampler, made) if len(sampler.args) == 1 and not sampler.keywords else edits.give_up()
    else:
        edits.give_up()
    if not script.mentioned("set_epoch") and drawn_again(script, loader):
        tell_epoch(script, edits, loader)
    return edits.fix("Gives each rank its share of the samples, shuffled anew in each epoch.")


def check_run(evidence: Evidence) -> Observation:
    """Flag epochs in which every rank drew (almost) the whole set."""
    from grader.checks.run.data.epoch_partition import PartitionKind, epoch_partitions
    from grader.checks.run.data.given_inputs import given_alike
    from grader.checks.run.models.replica_comparison import in_parts_by_hand

    if (alike := given_alike(evidence)) is not None:
        return flagged(alike)
    judged: list[EpochPartition] = []
    for stream in evidence.ledger.training:
        found = epoch_partitions(evidence.ledger, stream)
        whole = [d for d in found if d.kind is PartitionKind.WHOLE]
        in_parts = in_parts_by_hand(evidence.trace) if whole else ""
        if in_parts:
            return not_observable(f"{in_parts}: those have to draw the same samples, as these do.")
        if whole:
            return flagged(_hit(evidence.script, stream, whole, evidence.ledger.layout))
        judged += found
    parts = [d for d in judged if d.kind in (PartitionKind.DISJOINT, PartitionKind.OVERLAP)]
    if parts:
        return verified(_shares(parts[0].epoch, max(parts[0].num_distinct, parts[0].num_expected or 0)))
    # Whatever its samples are called, a rank that draws far fewer than there are does not draw them all.
    total = evidence.ledger.num_train
    whole_epochs = [d.epoch for d in judged if d.epoch.known and d.epoch.own and d.epoch.complete]
    if total and whole_epochs and all(s.num_distinct < 0.9 * total for e in whole_epochs for s in e.shards):
        return verified(_shares(whole_epochs[0], total))
    if judged:
        return not_observable(f"The shards could not be compared: {judged[0].reason}.")
    return not_observable(_one_model(evidence) or "No epoch was seen in which two or more ranks trained.")


def _one_model(evidence: Evidence) -> str:
    """Where all ranks together hold one model: there is nothing to divide."""
    layout = evidence.ledger.layout
    if not layout.divided or len(layout.models) > 1:
        return ""
    return (
        f"{ranks(layout.models[0])} hold parts of one model{layout.dimension(layout.models[0])} and work on the same "
        "samples, so there are no shares."
    )


def _shares(epoch: EpochShards, total: int) -> str:
    shares = ", ".join(f"rank {s.rank}: {s.num_distinct:,}" for s in epoch.shards[:8])
    many, told = (count(total, "sample"), f" ({shares})") if epoch.exact else ("samples", "")
    return f"In epoch {epoch.number} no rank had all {many}: each drew its share{told}."


def _streams(script: Script) -> bool:
    """Whether all training loaders draw from streams, which take no sampler."""
    trained = [loader for loader in script.training.loaders() if script.training.roles(loader).trains]
    return bool(trained) and all(script.sharding.iterable(loader) is not None for loader in trained)


def _hit(script: Script, stream: Stream, whole: list[EpochPartition], layout: Layout) -> Hit:
    first = whole[0].epoch
    numbers = [d.epoch.number for d in whole]
    who, plural = ("copy of the model", "copies") if layout.divided else ("rank", "ranks")
    number, everyone = len(first.shards), layout.with_partners(first.ranks)
    drew = "drew the same" if first.num_shared == first.num_distinct else "each drew nearly all"
    when = epochs(numbers) if first.exact else "each of the first epochs"
    orders = orders_read(script)[:1] if stream.hashed else []
    cause, hint = whole_order(script, orders[0]) if orders else _cause(script, stream, first)
    blamed: Sequence[ast.AST] = orders
    for short in list(short_advances(script))[:1] if stream.hashed else ():
        cause, hint, blamed = short.says.rstrip("."), short.hint, short.nodes
    told = first.shards[0].loader
    one = for_one_rank(script, loader_at(script, stream.site)) if told and told.num_replicas == 1 else None
    if one is not None:
        cause, hint = one.says, one.hint
    return Hit(
        message=f"{ranks(everyone)} {drew} {count(first.num_distinct, 'sample')} in {when}. {cause}, so every {who} "
        f"trains on the whole set: {number} {plural} do the same work {number} times.",
        hint=hint,
        where=(*lines(script, one.nodes if one is not None else blamed), *place(stream.site))
        or lines(script, script.training.backwards[:1]),
        ranks=everyone,
        details={
            "epochs": numbers,
            "samples_by_rank": {str(s.rank): s.num_distinct for s in first.shards},
            "shared": first.num_shared,
            "first_shared": list(first.shared),
        },
    )


def _cause(script: Script, stream: Stream, first: EpochShards) -> tuple[str, str]:
    """Why nothing divides the samples, and what to write."""
    if stream.site is None:
        hint = _DIVIDE_STREAM if _streams(script) else rows_of_own(script) if stream.hashed else DIVIDE
        return "Nothing in the script divides the samples among ranks", hint
    sampler = first.shards[0].loader.sampler if first.shards[0].loader else ""
    loader = loader_at(script, stream.site)
    hint = _DIVIDE_STREAM if _streams(script) else DIVIDE if loader is None else divided(script, loader)
    kind = f"`{sampler}`" if sampler else "sampler"
    return f"{at(stream.site)} builds the loader with a {kind} that knows no ranks", hint
