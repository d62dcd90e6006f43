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
be equal. `DistributedSampler` pads its shards to equal sizes, so averages over those are exact and left alone. Shares
cut by rank may differ by a sample or be equal, as the set's length will have it: a hint, until a run shows their sizes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from grader.checks.phrases import count, ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source import rank_dependent_shares as unequal
from grader.checks.source.loader_sharding import Shared
from grader.checks.source.ratio_fixes import reduced_first
from grader.checks.source.reduction_results import undivided
from grader.checks.source.script import Script
from grader.checks.source.syntax_nodes import end, name_of, start, walk
from grader.checks.source.training_loops import SAMPLER, Draw
from grader.model.finding import Severity
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.WARNING
NEEDS = Precondition.GROUP
_AVERAGING = {
    "all_reduce",
    "reduce",
    "all_gather",
    "gather",
    "all_gather_object",
    "gather_object",
    "all_gather_into_tensor",
}
_HELPERS = (
    "reduce_mean",
    "mean_reduce",
    "average_over",
    "all_mean",
    "reduce_value",
    "average_across",
    "reduce_tensor",
)
_MEANS = {"mean", "nanmean", "fmean"}
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
        if not sure and all(_equal(script, x) for x in loaders):
            continue
        for ratio in _ratios(script, draw):
            reduction = _reduced(script, ratio)
            if reduction is not None and not _reported_as_sum(script, reduction):
                yield _hit(script, loaders[0], ratio, reduction, sure)
                break


def _hit(script: Script, loader: ast.Call, ratio: ast.expr, reduction: ast.Call, sure: bool) -> Hit:
    sizes = "are not of one size" if sure else "need not be of one size"
    return Hit(
        message=f"{script.at(reduction)} averages {script.quote(ratio)} over the ranks, but each rank worked it out "
        f"over its own share of the validation set, and the shares that {script.at(loader)} cuts {sizes}: a small "
        "share weighs as much as a large one.",
        hint=reduced_first(script, ratio, reduction),
        where=(script.location(reduction),),
        severity=None if sure else Severity.HINT,
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


def _ratios(script: Script, draw: Draw) -> Iterable[ast.expr]:
    """Ratios and means of what a loop counted, below it in the same scope."""
    counted = script.reductions.counted(draw)
    tree = script.names.tree(draw.loop)
    scope = tree.scope(draw.loop)
    for name in sorted(counted):
        for load in tree.loads.get(name, ()):
            if tree.scope(load) is not scope or start(load) < end(draw.loop):
                continue
            child: ast.AST = load
            above = tree.parent.get(load)
            while isinstance(above, ast.expr):
                if isinstance(above, ast.BinOp) and isinstance(above.op, ast.Div) and child is above.left:
                    if _local_size(script, above.right, counted):
                        yield above
                    break
                if isinstance(above, ast.Call) and name_of(above) in _MEANS:
                    yield above
                    break
                child, above = above, tree.parent.get(above)


def _local_size(script: Script, node: ast.expr, counted: set[str]) -> bool:
    """A number of samples or batches of this rank's own: counted in the loop, or the length of what it went through."""
    for part in walk(node):
        if isinstance(part, ast.Name) and part.id in counted:
            return True
        if isinstance(part, ast.Call) and script.names.qualified(part.func) == "len" and part.args:
            of = script.values.origins(part.args[0])
            if any(o in script.training.loaders() for o in of) or name_of(part.args[0]).endswith("loader"):
                return True
    return False


def _reduced(script: Script, ratio: ast.expr) -> ast.Call | None:
    """The reduction that a ratio goes into as it is; None also where it was weighted first."""
    for call, name in script.collectives.direct.items():
        if name not in _AVERAGING:
            continue
        operation = script.argument(call, "op")
        if operation is not None and name_of(operation) in ("MAX", "MIN", "PRODUCT"):
            continue
        given = [a for n in ("tensor", "obj", "input_tensor") if (a := script.argument(call, n)) is not None]
        for argument in given:
            made = script.values.closure(argument)
            if ratio in made and not any(_weights(script, n, ratio) for n in made):
                return call
    for call in script.called_like(lambda name: any(w in name.lower() for w in _HELPERS)):
        helps = not script.graph.targets(call)
        if helps and any(ratio in script.values.closure(a) for a in call.args):
            return call
    return None


def _reported_as_sum(script: Script, reduction: ast.Call) -> bool:
    """A sum of means that nobody divides is no average at all; that is EVAL008's to say."""
    tensor = script.argument(reduction, "tensor")
    return tensor is not None and undivided(script, reduction, tensor) is not None


def _weights(script: Script, node: ast.AST, ratio: ast.expr) -> bool:
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return False
    return any(ratio in script.values.closure(side) for side in (node.left, node.right))


def check_run(evidence: Evidence) -> Observation:
    """Flag ratios that the source averages over shares which the run showed to be unequal."""
    from grader.checks.run.validation_passes import combining, divided_passes

    hits = list(check_source(evidence.script))
    good = ""
    for stream in evidence.ledger.validation:
        parts = divided_passes(evidence.ledger, stream)
        if not parts:
            continue
        sizes = {s.rank: s.num_samples for s in parts[-1].epoch.shards}
        if len(set(sizes.values())) == 1:
            each = count(next(iter(sizes.values())), "sample")
            good = f"All ranks scored {each}, so an average of their metrics is exact."
            continue
        told = ", ".join(f"rank {r}: {n:,}" for r, n in list(sizes.items())[:8])
        joined = combining(evidence.trace, stream, evidence.script)
        if hits and joined:
            return flagged(*(_measured(h, told, sizes) for h in hits))
        if joined and all((c.numel or 0) > 1 for c in joined):
            good = f"The shares differ ({told}), and several numbers were reduced together, as counts are."
    return (
        verified(good)
        if good
        else not_observable("No divided validation whose parts were averaged was seen.")
    )


def _measured(hit: Hit, told: str, sizes: dict[int, int]) -> Hit:
    return replace(
        hit,
        message=f"{hit.message} In this run the shares were of {told} samples, for {ranks(sizes).lower()}.",
        ranks=tuple(sorted(sizes)),
        details={"samples_by_rank": {str(r): n for r, n in sizes.items()}},
        severity=None,
    )
