"""The batch meant for all ranks together is taken by each of them.

## What it finds
A loader on each rank with a batch size that is called global or total, or a global batch that differs from the one the
task prescribes, mostly by the number of ranks.

## Why it matters
`batch_size` of a loader counts one rank's samples. k ranks with the whole batch each take steps on k batches: there are
k times fewer steps, and the learning rate no longer fits.

## Example
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

GLOBAL_BATCH_SIZE = 256

dist.init_process_group("gloo")
model = DistributedDataParallel(build_model())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
sampler = DistributedSampler(train_set)
loader = DataLoader(train_set, batch_size=GLOBAL_BATCH_SIZE, sampler=sampler)
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

GLOBAL_BATCH_SIZE = 256

dist.init_process_group("gloo")
model = DistributedDataParallel(build_model())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
sampler = DistributedSampler(train_set)
loader = DataLoader(train_set, batch_size=GLOBAL_BATCH_SIZE // dist.get_world_size(), sampler=sampler)
for images, labels in loader:
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
dist.destroy_process_group()
```

## How it is seen
In the run, where the task prescribes a global batch: by the samples that all ranks fed to the model per optimizer
step, accumulated ones included; the text then tells where the number of GPUs was taken for that of ranks. Another
total that the script divides among the ranks is its choice, and so is one that changes in training around the asked
one, unless the task asks for a batch other than that of its start. In the source, by a name that says `global` or
`total` and is given to a rank's loader without being divided by the number of ranks (a hint: names can mislead).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import count, listed, place
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.causes import lines
from grader.checks.source.data.batch_causes import chosen_for_all, divided_by_devices, divided_twice
from grader.checks.source.data.loader_sharding import Shared
from grader.checks.source.data.share_causes import batch_size_of
from grader.checks.source.gradients.causes import accumulation_tests
from grader.checks.source.optimisation.optimisation_fixes import smaller_batch
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import name_of
from grader.model.finding import Severity

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.WARNING
EXPLAINED_BY = ("DATA004", "DIST001", "DIST004", "DIST006", "GRAD001", "GRAD003")
_WHOLE = re.compile(r"^(?=.*(global|total|overall|effective))(?=.*(batch|bs|bsz))", re.IGNORECASE)
_TOLERANCE = 1.4
"""A global batch within this factor of the prescribed one is a matter of rounding or taste."""
_DIVIDE = (
    "Give each rank its part: `DataLoader(…, batch_size=BATCH_SIZE // dist.get_world_size())`. Where memory asks for "
    "smaller parts, accumulate gradients."
)


def check_source(script: Script) -> Iterable[Hit]:
    """Flag global batch sizes that reach a rank's loader undivided."""
    training = script.training
    if not script.joins_group or training.framework:
        return
    for loader in training.loaders():
        size = script.given(loader, "batch_size")
        divided = script.sharding.of(loader) is Shared.YES
        if size is None or not divided or not training.roles(loader).trains:
            continue
        parts = script.values.closure(size)
        said = next(
            (name_of(p) for p in parts if isinstance(p, ast.expr | ast.arg) and _WHOLE.match(name_of(p))), ""
        )
        by_world = any(
            isinstance(p, ast.expr) and (script.ranks.world(p) or "world" in name_of(p).lower())
            for p in parts
        )
        if not said or by_world or _by_function(script, parts):
            continue
        yield Hit(
            message=f"{script.at(loader)} gives each rank's loader `{said}` undivided, {script.quote(loader)}. "
            "`batch_size` counts one rank's samples, so k ranks take steps on k times as many.",
            hint=_DIVIDE,
            where=(script.location(loader),),
            severity=Severity.HINT,
        )


def _by_function(script: Script, parts: Iterable[ast.AST]) -> bool:
    """A call that nobody can see into may divide."""
    known = (
        "int",
        "min",
        "max",
        "len",
        "parse_args",
        "getenv",
        "get",
        "ArgumentParser",
        "add_argument",
        "argument",
    )
    return any(
        isinstance(p, ast.Call) and name_of(p) not in known and not script.graph.targets(p) for p in parts
    )


def check_run(evidence: Evidence) -> Observation:
    """Compare the samples of all ranks per step with what the task prescribes."""
    from grader.checks.run.optimisation.learning_rates import batch_levels, batches, loaders_in_step

    asked = evidence.expected.global_batch_size
    sizes = batches(evidence.trace)
    if not sizes:
        return not_observable("No optimizer step with known samples was seen.")
    total, ranks = sum(sizes.values()), len(sizes)
    told = f"{listed(f'{b:,} on rank {r}' for r, b in sizes.items())}, {total:,} together"
    if asked is None:
        return not_observable(f"The task prescribes no global batch; steps took {told}.")
    factor = total / asked
    if 1 / _TOLERANCE <= factor <= _TOLERANCE:
        return verified(f"Steps took {count(total, 'sample')} over all ranks, as the task asks ({asked:,}).")
    site = next((s.site for s in evidence.ledger.training), None)
    # Where the task asks for another batch than the script had before, the batch is what the task is about.
    as_before = evidence.expected.base_batch_size in (None, asked)
    levels, num_loaders = batch_levels(evidence.trace), loaders_in_step(evidence.trace)
    if as_before and len(levels) > 1 and levels[0] / _TOLERANCE <= asked <= levels[-1] * _TOLERANCE:
        return verified(
            f"The batch of all ranks changes in training, from {levels[0]:,} to {levels[-1]:,} samples: {asked:,}, as "
            "the task has it, lies between."
        )
    chosen = chosen_for_all(evidence.script, site, total, max(1, num_loaders)) if as_before else None
    if chosen is not None:
        return verified(
            f"Steps took {total:,} samples over all ranks, as {evidence.script.at(chosen)} divides among them."
        )
    alone = num_loaders < 2
    tests = list(accumulation_tests(evidence.script)) if factor > 1 else []
    if tests:
        why = (
            f"{evidence.script.at(tests[0])} lets only some micro-batches step ({evidence.script.quote(tests[0])}), so "
            f"a step takes {factor:.3g} times the task's {asked:,}"
        )
    elif alone and ranks > 1 and abs(factor / ranks - 1) < 0.2:
        why = f"each of {ranks} ranks takes the whole batch of {asked:,}, so there are {ranks} times fewer steps"
    elif alone and ranks > 1 and abs(factor * ranks - 1) < 0.2:
        why = f"the batch was divided by {ranks} twice, so steps are smaller and noisier than they were"
    else:
        taken = "" if alone else f"with batches of {num_loaders} loaders in a step, "
        why = f"{taken}the batch is {factor:.3g} times as large as the task's {asked:,}"
    written, fix = smaller_batch(evidence.script, site, factor, ranks) if alone else ("", None)
    hint = _DIVIDE
    small = alone and ranks > 1 and abs(factor * ranks - 1) < 0.2
    twice = divided_twice(evidence.script, site) if small else None
    devices = divided_by_devices(evidence.script, site) if ranks > 1 else None
    also = ""
    if devices is not None:
        also = (
            f" {evidence.script.at(devices.node)} divides by {evidence.script.quote(devices.part)}, the GPUs that one "
            "process sees, and not by the number of ranks."
        )
        hint = f"Divide by the number of ranks at {evidence.script.at(devices.node)}: `{devices.written}`."
        fix = devices.fix
    elif twice is not None:
        also, hint, fix = f" {twice.says}", twice.hint, twice.fix
    elif not alone:
        hint = (
            f"Count what a step takes from all its loaders: of {num_loaders}, each gives a rank "
            f"`BATCH_SIZE // ({num_loaders} * dist.get_world_size())` samples."
        )
    elif written:
        hint = f"Give {'each micro-batch' if tests else 'each rank'} its part: `batch_size={written}`."
        hint += " Or step after every micro-batch." if tests else ""
    return flagged(
        Hit(
            message=f"Per optimizer step the ranks took {told}: {why}, and the learning rate no longer fits.{also}",
            hint=hint,
            fix=fix,
            where=(
                *lines(evidence.script, [devices.node] if devices is not None else []),
                *lines(evidence.script, twice.nodes if twice is not None else ()),
                *lines(evidence.script, tests),
                *lines(evidence.script, batch_size_of(evidence.script, site)),
                *place(site),
            ),
            ranks=tuple(sizes),
            details={"batch_by_rank": {str(r): b for r, b in sizes.items()}, "expected": asked},
        )
    )
