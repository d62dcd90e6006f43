"""The ranks' metrics are averaged as if all shards were equally large.

## What it finds
An accuracy or mean loss that each rank works out over its own share of the validation set, averaged over the ranks
although the shares differ in size.

## Why it matters
A rank with few samples counts as much as one with many. With two shares of 900 and 100 samples and accuracies of 0.9
and 0.5 the average says 0.70, while 86 of 100 samples are right. Nothing crashes and nothing looks odd.

## Example
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
model = DistributedDataParallel(build_model())
train(model)
val_loader = DataLoader(Subset(val_set, range(rank, len(val_set), world_size)), batch_size=256)
model.eval()
correct = total = 0
with torch.no_grad():
    for images, labels in val_loader:
        correct += (model(images).argmax(dim=1) == labels).sum().item()
        total += len(labels)
accuracy = torch.tensor(correct / total)
dist.all_reduce(accuracy, op=dist.ReduceOp.AVG)
dist.destroy_process_group()
```

## Use instead
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset

dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
model = DistributedDataParallel(build_model())
train(model)
val_loader = DataLoader(Subset(val_set, range(rank, len(val_set), world_size)), batch_size=256)
model.eval()
counts = torch.zeros(2)
with torch.no_grad():
    for images, labels in val_loader:
        counts[0] += (model(images).argmax(dim=1) == labels).sum()
        counts[1] += len(labels)
dist.all_reduce(counts)  # sums of numerators and of denominators, divided once, at the end
accuracy = counts[0] / counts[1]
dist.destroy_process_group()
```

## How it is seen
In the source: a ratio of what a validation loop counted that goes into a reduction, over shares that are not known to
be equal. A ratio of what all ranks counted is none, and what is gathered, such as votes or each rank's own result, is
no average until somebody takes their mean. `DistributedSampler` pads its shards to equal sizes, so averages over those
are exact and left alone. Shares cut by rank may differ by a sample or be equal, as the set's length will have it: a
hint, until a run shows their sizes. A root, logarithm or exponential of each rank's own mean is no mean itself:
averaging those is a hint over any shares.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from grader.checks.phrases import count, listed, ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.collectives.reduction_results import undivided
from grader.checks.source.data import rank_dependent_shares as unequal
from grader.checks.source.data.loader_sharding import Shared
from grader.checks.source.metrics.averaged_ratios import averaging, bent_before, means_of_batches, ratios_of
from grader.checks.source.metrics.ratio_fixes import reduced_first
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import name_of, walk
from grader.checks.source.training_loops import SAMPLER
from grader.model.finding import Severity
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.WARNING
NEEDS = Precondition.GROUP
_EQUAL_WORDS = ("total_size", "pad", "ceil", "extra", "repeat", "drop")


def check_source(script: Script) -> Iterable[Hit]:
    """Flag reductions of ratios that were worked out over shares of unequal size."""
    training = script.training
    if not script.joins_group or script.frameworks.opaque or not script.collectives.direct:
        return
    for draw in training.draws:
        loaders = [
            x for x in draw.loaders if training.roles(x).evaluates and script.sharding.of(x) is Shared.YES
        ]
        if not draw.evaluates or not loaders or len(loaders) < len(draw.loaders):
            continue
        sure = any(_surely_unequal(script, x) for x in loaders)
        equal = not sure and all(_equal(script, x) for x in loaders)
        ratios = list(ratios_of(script, draw))
        for ratio in ratios:
            reduction = averaging(script, ratio)
            bent = bent_before(script, ratio, reduction) if reduction is not None else None
            if reduction is None or (equal and bent is None) or _reported_as_sum(script, reduction):
                continue
            if bent is not None:
                yield _bent_hit(script, ratio, reduction, bent)
            else:
                same = [r for r in ratios if r is not ratio and averaging(script, r) is reduction]
                yield _hit(script, loaders[0], [ratio, *same], reduction, sure)
            break


def _hit(script: Script, loader: ast.Call, ratios: list[ast.expr], reduction: ast.Call, sure: bool) -> Hit:
    ratio, others = ratios[0], listed(dict.fromkeys(map(script.quote, ratios[1:])), 3)
    sizes = "are not of one size" if sure else "need not be of one size"
    return Hit(
        message=f"{script.at(reduction)} averages {script.quote(ratio)} over the ranks, but each rank worked it out "
        f"over its own share of the validation set, and the shares that {script.at(loader)} cuts {sizes}: a small "
        "share weighs as much as a large one.",
        hint=reduced_first(script, ratio, reduction) + (f" Do the same with {others}." if others else ""),
        where=(script.location(reduction),),
        severity=None if sure else Severity.HINT,
    )


def _bent_hit(script: Script, ratio: ast.expr, reduction: ast.Call, bent: ast.expr) -> Hit:
    return Hit(
        message=f"{script.at(reduction)} averages {script.quote(bent)} over the ranks, which each worked out of its "
        "own share: the mean of the ranks' values is not the value over all samples, however equal the shares are.",
        hint=f"{reduced_first(script, ratio, reduction)} Then nothing is divided by the number of ranks any more.",
        where=(script.location(reduction),),
        severity=Severity.HINT,
        details={"of_own_share": ast.unparse(bent)},
    )


def _parts(script: Script, loader: ast.Call) -> list[ast.AST]:
    """All nodes that have a part in which samples a loader gives to a rank, classes of the submission included."""
    given = [script.argument(loader, n) for n in ("dataset", "sampler", "batch_sampler")]
    nodes = [n for g in given if g is not None for n in script.values.closure(g)]
    classes = [c for c in (script.graph.built_class(n) for n in nodes) if c is not None]
    return [*nodes, *(n for c in classes for n in walk(c))]


def _surely_unequal(script: Script, loader: ast.Call) -> bool:
    nodes = _parts(script, loader)
    return bool(
        unequal.bounds(script, nodes)
        or unequal.made_apart(script, nodes)
        or any(unequal.last_takes_rest(script, n) for n in nodes)
    )


def _equal(script: Script, loader: ast.Call) -> bool:
    """Whether shares are known, or meant, to be equal: padded, cut off, or of a size divided without a rest."""
    samplers = script.training.samplers(loader)
    if any(isinstance(s, ast.Call) and script.names.qualified(s.func) == SAMPLER for s in samplers):
        return True
    for node in _parts(script, loader):
        if (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.FloorDiv)
            and script.ranks.world(node.right)
        ):
            return True
        name = name_of(node) if isinstance(node, ast.Name | ast.Attribute | ast.Call) else ""
        if any(w in name.lower() for w in _EQUAL_WORDS):
            return True
    return False


def _reported_as_sum(script: Script, reduction: ast.Call) -> bool:
    """A sum of means that nobody divides is no average at all; that is EVAL008's to say."""
    tensor = script.argument(reduction, "tensor")
    return tensor is not None and undivided(script, reduction, tensor) is not None


def check_run(evidence: Evidence) -> Observation:
    """Flag ratios that the source averages over shares which the run showed to be unequal."""
    from grader.checks.run.metrics.validation_passes import combining, divided_passes

    hits = list(check_source(evidence.script))
    good = ""
    for stream in evidence.ledger.validation:
        parts = divided_passes(evidence.ledger, stream)
        if not parts:
            continue
        joined = combining(evidence.trace, stream, evidence.script)
        if joined and (bent := [h for h in hits if "of_own_share" in h.details]):
            return flagged(*bent)
        sizes = {s.rank: s.num_samples for s in parts[-1].epoch.shards}
        if len(set(sizes.values())) == 1:
            each = count(next(iter(sizes.values())), "sample")
            good = f"All ranks scored {each}, so an average of their metrics is exact."
            continue
        told = ", ".join(f"rank {r}: {n:,}" for r, n in list(sizes.items())[:8])
        if hits and joined:
            uneven = [s.sizes for s in parts[-1].epoch.shards if s.loader and len(set(s.sizes)) > 1]
            batches = f"batches of {listed(sorted(set(uneven[0])))} samples" if uneven else ""
            return flagged(*(_measured(evidence.script, h, (told, batches), sizes) for h in hits))
        if joined and all((c.numel or 0) > 1 for c in joined):
            good = f"The shares differ ({told}), and several numbers were reduced together, as counts are."
    return (
        verified(good)
        if good
        else not_observable("No divided validation whose parts were averaged was seen.")
    )


def _measured(script: Script, hit: Hit, told: tuple[str, str], sizes: dict[int, int]) -> Hit:
    shares, batches = told
    means = list(means_of_batches(script)) if batches else []
    also = f" {script.at(means[0])} takes a mean of each batch, too: {batches} weigh alike." if means else ""
    return replace(
        hit,
        message=f"{hit.message} In this run the shares were of {shares} samples, for {ranks(sizes).lower()}.{also}",
        where=tuple(dict.fromkeys((*(script.location(n) for n in means[:1]), *hit.where))),
        ranks=tuple(sorted(sizes)),
        details={"samples_by_rank": {str(r): n for r, n in sizes.items()}},
        severity=None,
    )
