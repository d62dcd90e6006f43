"""Training samples always come in the data set's own order.

## What it finds
A training loader or sampler that does not shuffle, over data that nothing else shuffles either. Also shares that are
cut out of each step's samples in the order of their labels.

## Why it matters
Batches of neighbours are alike: a file sorted by class gives batches of one class, and each rank a stretch of it.
Gradients then swing from class to class, and the model learns worse than the same data would teach it in mixed order.

## Example
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("gloo")
model = DistributedDataParallel(build_model())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
sampler = DistributedSampler(train_set, shuffle=False)
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
In the run, by shards whose indices only ever rise, epoch after epoch, or by labels: each rank's part of nearly every
step has other classes than the others' parts. Where a task asks for new shares in each epoch, it costs what DATA002
costs there: nothing renews them. In the source, by a training sampler with
`shuffle=False`, or a training loader without sampler and without `shuffle=True`, over data that the text shuffles
nowhere.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import at, count, first_known, listed, place, ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.causes import lines
from grader.checks.source.data.dataset_inputs import parts_of
from grader.checks.source.data.orders_by_hand import may_mix
from grader.checks.source.data.share_causes import loader_at, orders_of
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import name_of
from grader.model.finding import Severity

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.checks.run.data.label_shares import LabelShares
    from grader.checks.run.data.sample_ledger import Stream

SEVERITY = Severity.HINT

_MIN_SAMPLES = 64
_MIXING = {
    "shuffle", "permutation", "randperm", "permute", "sample", "choice", "randint", "rand", "randn", "random",
    "WeightedRandomSampler", "RandomSampler", "DistributedSampler", "argsort", "shuffled", "default_rng", "RandomState",
}  # fmt: skip
_SORTING = ("argsort", "sort", "sorted", "lexsort")
_SHUFFLE = "Let the sampler shuffle, `DistributedSampler(train_set, shuffle=True)` (its default)"


def check_source(script: Script) -> Iterable[Hit]:
    """Flag training loaders in which neither sampler, loader nor data set shuffles."""
    training = script.training
    if not script.joins_group or script.frameworks.opaque:
        return
    for loader in training.loaders():
        if not training.roles(loader).trains or script.guards.alone(loader):
            continue
        ordered = _in_given_order(script, loader)
        if ordered is None or _mixed(script, loader):
            continue
        yield Hit(
            message=f"{script.at(ordered)} lets the ranks train in the data set's own order, {script.quote(ordered)}, "
            "epoch after epoch. Neighbours are often alike, so batches are less varied than they could be.",
            hint=_shuffle(script),
            where=(script.location(ordered),),
        )


def _shuffle(script: Script, given: ast.expr | None = None) -> str:
    """What to write; `given`: what a sampler is told of shuffling, where that is known."""
    here = (
        f"Write `shuffle=True` at {script.at(given)}, the sampler's default"
        if given is not None
        else _SHUFFLE
    )
    if script.called("set_epoch"):
        return f"{here}: then `set_epoch` gives each epoch an order of its own; without, it changes nothing."
    return f"{here}, and call `sampler.set_epoch(epoch)` before each epoch."


def _in_given_order(script: Script, loader: ast.Call) -> ast.Call | None:
    """The call that leaves the order as it is; None where something may shuffle, or nobody can tell."""
    samplers = script.training.samplers(loader)
    known = script.training.distributed_samplers(loader)
    if known and len(known) == len(samplers):
        told = [(s, script.argument(s, "shuffle")) for s in known]
        kept = [s for s, shuffle in told if shuffle is not None and script.values.constant(shuffle) is False]
        return kept[0] if len(kept) == len(known) else None
    given = [script.argument(loader, name) for name in ("sampler", "batch_sampler")]
    if samplers or any(g is not None and not _is_none(script, g) for g in given):
        return None
    shuffle = script.argument(loader, "shuffle")
    dataset = script.argument(loader, "dataset")
    if dataset is None or (shuffle is not None and script.values.constant(shuffle) is not False):
        return None
    # Only a data set that is plain to see has an order of its own; streams and foreign classes may mix by themselves.
    origins = script.values.origins(dataset)
    calls = [o for o in origins if isinstance(o, ast.Call)]
    plain = calls and len(calls) == len(origins) and all(_is_plain(script, o) for o in calls)
    return loader if plain else None


def _is_plain(script: Script, call: ast.Call) -> bool:
    name = script.names.qualified(call.func) or ""
    indices = script.argument(call, "indices") if name == "torch.utils.data.Subset" else None
    if indices is not None and _is_none(script, indices):
        return False  # filled by a collective: what came is not written here
    if name.startswith("torchvision.datasets.") or name in (
        "torch.utils.data.Subset",
        "torch.utils.data.TensorDataset",
        "torch.utils.data.ConcatDataset",
    ):
        return True
    owner = script.graph.built_class(call)
    return owner is not None and script.graph.method(owner, "__getitem__") is not None


def _mixed(script: Script, loader: ast.Call) -> bool:
    """Whether anything shuffles or draws where the loader's data are made."""
    dataset = script.argument(loader, "dataset")
    parts = parts_of(script, dataset) if dataset is not None else set()
    for part in parts:
        if isinstance(part, ast.Call):
            owner = script.graph.built_class(part)
            if name_of(part) in _MIXING:
                return True
            if owner is not None and any(
                name_of(c) in _MIXING for c in script.names.tree(owner).calls_within(owner)
            ):
                return True
    return False


def _is_none(script: Script, node: ast.expr) -> bool:
    return script.values.constant(node) is None


def check_run(evidence: Evidence) -> Observation:
    """Flag training streams whose shards only ever rise, and shares that were cut from an order by label."""
    from grader.checks.run.data.index_contents import dealt_again
    from grader.checks.run.data.label_shares import apart_by_label
    from grader.checks.run.data.repeated_orders import never_renewed

    apart = apart_by_label(evidence.trace)
    if apart is not None:
        return flagged(_apart_hit(evidence, apart))
    mixed: list[str] = []
    for stream in evidence.ledger.training:
        shards = [s for e in stream.epochs for s in e.shards]
        if stream.hashed or not all(e.own for e in stream.epochs) or any(s.samples is None for s in shards):
            continue
        if any(s.loader is None or s.loader.hides for s in shards):
            continue
        long = [s for s in shards if s.num_samples >= _MIN_SAMPLES]
        if not long:
            continue
        if not all(s.in_order for s in long):
            mixed.append(f"The samples of {count(len(stream.epochs), 'training epoch')} came in mixed order.")
        elif may_mix(evidence.script):
            return not_observable(
                "Indices only rise, but the script may have shuffled the data before it numbered them."
            )
        else:
            steady = {rank.rank: dealt_again(rank) for rank in evidence.trace.ranks}
            again = evidence.expected.new_shares and never_renewed(stream, steady, mixed=False)
            return flagged(_hit(evidence.script, stream, costs=again))
    return verified(mixed[0]) if mixed else not_observable("No training epoch with known samples was seen.")


def _apart_hit(evidence: Evidence, seen: LabelShares) -> Hit:
    script, streams = evidence.script, evidence.ledger.training
    site = first_known([s.site for s in streams])
    own = any(w.num_batchnorm > w.num_sync_batchnorm for r in evidence.trace.ranks for w in r.wraps)
    sorts = [
        call
        for function in orders_of(script, loader_at(script, site))
        for call in script.names.tree(function).calls_within(function)
        if name_of(call) in _SORTING
    ]
    told = listed([f"labels {_span(labels)} on rank {rank}" for rank, labels in list(seen.first.items())[:4]])
    return Hit(
        message=f"At {seen.num_apart} of {count(seen.num_steps, 'step')} looked at, each rank had other classes than "
        f"the others: {told} at first. The shares are cut by label."
        + " BatchNorm keeps statistics of each rank's own part, which then are those of some classes."
        * own,
        hint=f"Leave out {_sorting(script, sorts[0])} at {script.at(sorts[0])}, and cut shares from the mixed order."
        if sorts
        else "Cut the shares from the mixed order, every k-th sample for each of k ranks.",
        where=(*(script.location(c) for c in sorts[:1]), *place(site)),
        ranks=tuple(seen.first),
        details={"steps": seen.num_steps, "apart": seen.num_apart},
    )


def _sorting(script: Script, call: ast.Call) -> str:
    """What puts samples in order: the whole statement where it does nothing else, `order = order[keys.argsort()]`."""
    made = script.names.tree(call).statement(call)
    names = {ast.unparse(t) for t in made.targets} if isinstance(made, ast.Assign) else set()
    read = {name_of(n) for n in ast.walk(made.value)} if isinstance(made, ast.Assign) else set()
    return script.quote(made if names & read else call)


def _span(labels: tuple[int, ...]) -> str:
    whole = len(labels) > 2 and labels[-1] - labels[0] == len(labels) - 1
    return f"{labels[0]} to {labels[-1]}" if whole else listed(labels)


def _hit(script: Script, stream: Stream, *, costs: bool) -> Hit:
    epochs = count(len(stream.epochs), "epoch")
    loader = loader_at(script, stream.site)
    samplers = script.training.distributed_samplers(loader) if loader is not None else ()
    given = (script.argument(sampler, "shuffle") for sampler in samplers)
    told = [one for one in given if isinstance(one, ast.expr)]
    same = " No epoch deals the samples out anew: each rank has the same ones in the same batches for ever."
    return Hit(
        message=f"{ranks(stream.ranks)} met their training samples in rising order of index in all {epochs} that were "
        f"seen. {at(stream.site, 'The training loader')} shuffles nothing, so batches consist of neighbours, which "
        f"are often alike.{same if costs else ''}",
        hint=_shuffle(script, next(iter(told), None)),
        where=(*lines(script, told), *place(stream.site)),
        ranks=stream.ranks,
        severity=Severity.WARNING if costs else None,
        details={
            "first_samples": {str(r): list((stream.shards(r)[0].samples or ())[:8]) for r in stream.ranks[:8]}
        },
    )
