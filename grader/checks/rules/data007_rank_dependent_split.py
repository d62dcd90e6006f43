"""Ranks divide different data: split, order or content was drawn on each of them by itself.

## What it finds
`random_split`, `train_test_split`, a permutation or generated data that every rank draws on its own, without a common
seed, before the samples are dealt out by index; also file lists and sets in whatever order the system gives them.

## Why it matters
Sharding by index means that number 17 is the same sample everywhere. Where each rank has shuffled for itself, shards
overlap and leave gaps, and what one rank trains on another one validates on: the validation metric is too good, and
nothing says so.

## Example
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, random_split

dist.init_process_group("gloo")
train_set, val_set = random_split(all_images, [9000, 1000])
model = DistributedDataParallel(build_model())
sampler = DistributedSampler(train_set)
loader = DataLoader(train_set, batch_size=64, sampler=sampler)
dist.destroy_process_group()
```

## Use instead
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, random_split

dist.init_process_group("gloo")
same_on_all = torch.Generator().manual_seed(0)
train_set, val_set = random_split(all_images, [9000, 1000], generator=same_on_all)
model = DistributedDataParallel(build_model())
sampler = DistributedSampler(train_set)
loader = DataLoader(train_set, batch_size=64, sampler=sampler)
dist.destroy_process_group()
```

## How it is seen
In the run, by samples that one rank trained on and another one validated on, by samplers that agree on seed, epoch and
size and still deliver the same sample twice, and by digests of the data sets themselves. In the source, by random
splits and orders without a seed, and by file lists that nobody sorts.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import at, count, listed, place, ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.calls.arguments import arguments_of
from grader.checks.source.causes import lines
from grader.checks.source.data.dataset_inputs import in_order, lists_files, orders_set, parts_of
from grader.checks.source.data.loader_sharding import Shared
from grader.checks.source.data.seed_fixes import seeded_alike, together
from grader.checks.source.data.share_causes import orders_of, salted
from grader.checks.source.script import Script
from grader.checks.source.values.random_generators import Seeding
from grader.checks.source.values.seeds import Seeded, share_seed
from grader.model.finding import Severity
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.checks.run.data.epoch_partition import EpochPartition
    from grader.checks.run.data.split_membership import Disagreement, Leak

SEVERITY = Severity.ERROR
NEEDS = Precondition.RANKS
_SPREADS = ("broadcast", "broadcast_object_list", "scatter_object_list", "scatter")
_SEED = (
    "Draw it from a generator that is seeded alike on all ranks: "
    "`random_split(data, lengths, generator=torch.Generator().manual_seed(0))`, "
    "`train_test_split(…, random_state=0)`, `numpy.random.default_rng(0).permutation(n)`."
)


def check_source(script: Script) -> Iterable[Hit]:
    """Flag random splits and orders that no common seed makes equal on all ranks (hints: listings, made-up data)."""
    if not script.joins_group:
        return
    seeding = Seeding(script)
    told: set[ast.AST] = set()
    for call in seeding.all_splits():
        if _on_each_rank(script, call):
            source, state = seeding.drawn(call)
            if source and state in (Seeded.NEVER, Seeded.BY_RANK):
                told.add(call)
                yield _split_hit(script, call, source, state)
    for loader in script.training.loaders():
        if not script.training.roles(loader).trains or not _dealt_by_index(script, loader):
            continue
        orders = list(orders_of(script, loader))
        for node in sorted(_makers(script, loader), key=lambda c: (c.lineno, c.col_offset)):
            hit = _order_hit(script, seeding, node) if node not in told else None
            own = script.names.tree(node).function(node) in orders
            if hit is not None and (own or _on_each_rank(script, node)) and not _after_sharding(script, node):
                told.add(node)
                yield hit


def _on_each_rank(script: Script, call: ast.Call) -> bool:
    """Whether every rank runs a call for itself and nobody's result is handed to the others."""
    if script.guards.partial(call) is not None or not script.guards.on_every_rank(call):
        return False
    spread = [c for name in _SPREADS for c in script.calls(f"torch.distributed.{name}")]
    return not any(call in script.values.closure(a) for c in spread for a in c.args)


def _dealt_by_index(script: Script, loader: ast.Call) -> bool:
    if script.frameworks.divides(loader) and (
        script.sharding.iterable(loader) is not None or script.calls_given("dispatch_batches")
    ):
        return False  # rank 0 may read for all, and then its order is the only one
    return bool(script.training.distributed_samplers(loader)) or script.sharding.of(loader) is Shared.YES


def _makers(script: Script, loader: ast.Call) -> set[ast.Call]:
    """Calls that have a part in the loader's data set, or in the order that its samplers are given."""
    dataset = script.argument(loader, "dataset")
    found: set[ast.AST] = set()
    for given in (dataset, *_given_to_samplers(script, loader)):
        if given is not None:
            found |= parts_of(script, given)
    for function in orders_of(script, loader):
        found.update(script.names.tree(function).calls_within(function))
    return {n for n in found if isinstance(n, ast.Call)}


def _given_to_samplers(script: Script, loader: ast.Call) -> list[ast.expr]:
    samplers = [s for s in script.training.samplers(loader) if isinstance(s, ast.Call)]
    return [a for s in samplers for a in s.args[:1]]


def _after_sharding(script: Script, call: ast.Call) -> bool:
    """A call that works on what is already one rank's share: the share may have any order."""
    given = arguments_of(call)
    parts = {p for a in given for p in script.values.closure(a)}
    return any(script.sharding.by_rank(p) for p in parts)


def _split_hit(script: Script, call: ast.Call, source: str, state: Seeded) -> Hit:
    why = "whose seed holds the rank" if state is Seeded.BY_RANK else "which nothing seeds alike on all ranks"
    return Hit(
        message=f"{script.at(call)} splits the data at random on every rank, {script.quote(call)}, with {source}, "
        f"{why}. Each rank then has a training set and a validation set of its own: what one trains on, another one "
        "is scored on.",
        hint=_SEED,
        where=(script.location(call),),
        fix=seeded_alike(script, call),
    )


def _order_hit(script: Script, seeding: Seeding, call: ast.Call) -> Hit | None:
    where = (script.location(call),)
    source, state = seeding.drawn(call)
    if source:
        if state not in (Seeded.NEVER, Seeded.BY_RANK) or seeding.splits(call):
            return None
        if seeding.orders(call):
            apart = seeding.apart(call)
            advice, fix = share_seed(script, apart)
            return Hit(
                message=f"{script.at(call)} puts the samples in a random order on every rank, {script.quote(call)}, "
                f"with {source}, which is not the same on all of them. Shares are taken by index afterwards, so they "
                "overlap and leave gaps."
                + (f" {script.at(apart[0])} is where its seed comes from." if apart else ""),
                hint=advice or _SEED,
                where=(*(script.location(n) for n in apart), *where),
                fix=fix if apart else seeded_alike(script, call),
            )
        if not _in_getitem(script, call):
            return Hit(
                message=f"{script.at(call)} makes up data at random on every rank, {script.quote(call)}, with "
                f"{source}, which is not the same on all of them. The sampler divides one set by index, but each rank "
                "has a set of its own.",
                hint="Seed alike before the data are made (`torch.manual_seed(0)`), or let one rank make the file.",
                where=where,
                severity=Severity.HINT,
            )
        return None
    if lists_files(script, call) and not in_order(script, call):
        return Hit(
            message=f"{script.at(call)} numbers the samples in the order of {script.quote(call)}, which is whatever "
            "the file system gives. On another node it may be another one, and then shares taken by index overlap.",
            hint="Sort it: `sorted(os.listdir(folder))`.",
            where=where,
            severity=Severity.HINT,
        )
    if orders_set(script, call):
        return Hit(
            message=f"{script.at(call)} numbers things in the order of a set, {script.quote(call)}. Python orders "
            "texts in a set differently in each process, so the numbers mean something else on each rank.",
            hint="Sort it: `sorted(set(labels))`.",
            where=where,
            severity=Severity.HINT,
        )
    return None


def _in_getitem(script: Script, call: ast.Call) -> bool:
    function = script.names.tree(call).function(call)
    return function is not None and function.name in ("__getitem__", "__iter__", "forward", "__call__")


def check_run(evidence: Evidence) -> Observation:
    """Flag sample sets that ranks do not agree on."""
    from grader.checks.run.data.divided_parts import divided_parts
    from grader.checks.run.data.epoch_partition import PartitionKind, epoch_partitions
    from grader.checks.run.data.split_membership import different_roots, different_splits, leaks

    found = leaks(evidence.ledger)
    if found:
        return flagged(_leak_hit(found[0]))
    splits = different_splits(evidence.ledger)
    if splits:
        return flagged(_disagreement_hit(splits[0], Severity.ERROR, evidence.script))
    if any(divided_parts(evidence.trace, evidence.ledger, s) for s in evidence.ledger.training):
        return not_observable(
            "Each rank holds a part of its own, which its sampler divides once more (DATA004)."
        )
    roots = different_roots(evidence.ledger)
    if roots:
        ordered = any(h.severity is None for h in check_source(evidence.script))
        return flagged(_root_hit(roots[0], Severity.ERROR if ordered else Severity.WARNING))
    known = [s for s in evidence.ledger.training if not s.hashed and any(e.known for e in s.epochs)]
    if not known or max(len(s.ranks) for s in known) < 2:
        return not_observable("No training epoch with known samples was seen on two or more ranks.")
    drawn = [hit for hit in check_source(evidence.script) if hit.severity is None]
    shared = [
        p for s in known for p in epoch_partitions(evidence.ledger, s) if p.kind is PartitionKind.OVERLAP
    ]
    if drawn and shared:
        return flagged(_overlap_hit(drawn, shared))
    if evidence.ledger.validation:
        return verified("No rank validated on a sample that another one trained on.")
    return verified("The samples that ranks drew fit one common training set.")


def _overlap_hit(drawn: list[Hit], shared: list[EpochPartition]) -> Hit:
    """Shares that overlap, in a script whose ranks draw sets or orders of their own."""
    epoch = shared[0].epoch
    return Hit(
        message=f"{ranks(epoch.ranks)} shared {count(epoch.num_shared, 'sample')} in epoch {epoch.number} (first ones: "
        f"{listed(epoch.shared)}). {drawn[0].message}",
        hint=drawn[0].hint,
        where=tuple(place for hit in drawn for place in hit.where),
        ranks=epoch.ranks,
        details={"epochs": [p.epoch.number for p in shared]},
        fix=together([hit.fix for hit in drawn]),
    )


def _leak_hit(leak: Leak) -> Hit:
    return Hit(
        message=f"{ranks((leak.scorer,))} validated on {count(leak.num_shared, 'sample')} that "
        f"{ranks((leak.trainer,)).lower()} trained on (first ones: {listed(leak.first)}), while no rank met a sample "
        f"in both roles itself. {at(leak.site, 'The script')} draws from a split that each rank made by itself, so "
        "the validation metric is scored on training data.",
        hint=_SEED,
        where=place(leak.site),
        ranks=(leak.trainer, leak.scorer),
        details={"shared": leak.num_shared, "first_shared": list(leak.first)},
    )


def _disagreement_hit(found: Disagreement, severity: Severity, script: Script) -> Hit:
    cause = salted(script, found.site)
    return Hit(
        message=f"{ranks(found.ranks)} drew {count(found.num_shared, 'sample')} twice in epoch {found.epoch} "
        f"(first ones: {listed(found.first)}), although their samplers agree on seed, epoch and size. So the data sets "
        f"that {at(found.site, 'the training loader')} divides are not the same: "
        + (cause.says if cause else "each rank has drawn its own subset or order."),
        hint=cause.hint if cause else _SEED,
        where=(*lines(script, cause.nodes if cause else ()), *place(found.site)),
        ranks=found.ranks,
        details={"epoch": found.epoch, "shared": found.num_shared, "first_shared": list(found.first)},
        severity=severity,
    )


def _root_hit(found: Disagreement, severity: Severity) -> Hit:
    return Hit(
        message=f"{ranks(found.ranks)} each hold a training set of their own: equal in size, different in content "
        f"(digests {listed(found.first)}). {at(found.site, 'The training loader')} deals them out by index, as if "
        "number 17 were the same sample everywhere: shares overlap, or the run trains on as many sets as there are "
        "ranks.",
        hint="Make the data set the same on every rank: seed alike before it is drawn, sort file lists, or build it "
        "on one rank and share the file.",
        where=place(found.site),
        ranks=found.ranks,
        details={"digests": list(found.first)},
        severity=severity,
    )
