"""All ranks use the same GPU.

## What it finds
CUDA devices named without the rank: a plain `"cuda"`, `.cuda()` or `torch.cuda.current_device()` with no
`torch.cuda.set_device`, or a fixed number.

## Why it matters
`"cuda"` means the current device, and that is number 0 in every process until it is told otherwise. All ranks then
share one GPU while the others idle: slow, soon out of memory, and refused by NCCL. Without GPUs nothing shows.

## Example
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = DistributedDataParallel(build_model().to(device))
dist.destroy_process_group()
```

## Use instead
```python
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

local_rank = int(os.environ["LOCAL_RANK"])
device = torch.device("cpu")
if torch.cuda.is_available():
    torch.cuda.set_device(local_rank)
    device = torch.device("cuda", local_rank)
dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
model = DistributedDataParallel(build_model().to(device))
dist.destroy_process_group()
```

## How it is seen
In the source: every place that names a CUDA device, followed to the rank or to a number; also `CUDA_VISIBLE_DEVICES`
set after CUDA was touched, or for one GPU per rank beside numbers by rank. A default that a distributed run replaces
before anything reads it is left alone. In the run, on GPUs: the device of each rank's parameters. On the CPU profile it
can't show and is a warning only. Reference: "Use DistributedDataParallel", https://pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import at, places, ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.causes import names_rank
from grader.checks.source.devices.cuda_indices import asks_current, device_numbers
from grader.checks.source.devices.device_pinning import OWN, PIN, pinning, placed_too_early, started_by_hand
from grader.checks.source.devices.named_devices import (
    Named,
    device_choices,
    dropped_devices,
    how_named,
    pins,
    sets_current,
    starts_cuda,
    told_by,
)
from grader.checks.source.ranks.literal_ranks import environment_writes
from grader.checks.source.ranks.replaced_defaults import replaced_on_ranks
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import start
from grader.model.finding import Severity
from grader.model.fix import Fix
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.model.trace import RankTrace

SEVERITY = Severity.ERROR
ON_PROFILE = {"cpu": Severity.WARNING}
NEEDS = Precondition.GPUS


def check_source(script: Script) -> Iterable[Hit]:
    """Flag devices that are the same on every rank."""
    if not script.joins_group or script.training.framework or script.may_hide_setup:
        return
    if _masked(script):
        yield from _masks(script)
        return
    named = [
        (node, how_named(script, value))
        for node, value in device_choices(script)
        if not replaced_on_ranks(script, node)
    ]
    pinned = any(pins(script, value) for node, value in device_choices(script) if sets_current(script, node))
    by_rank = any(what is Named.OTHER for _, what in named)
    wrong = [n for n, what in named if what is Named.FIXED]
    if not pinned and (wrong or not by_rank or any(what is Named.CURRENT for _, what in named)):
        wrong += [n for n, what in named if what is Named.CURRENT]
    setters = [n for n, value in device_choices(script) if sets_current(script, n) and pins(script, value)]
    early = placed_too_early(script, [n for n, what in named if what is Named.CURRENT], setters)
    if early and not wrong:
        yield _too_early(script, early, setters[0])
    wrong = [n for n in wrong if script.guards.partial(n) is None and not script.guards.alone(n)]
    wrong.sort(key=lambda n: (script.location(n).path, start(n)))
    if not wrong:
        return
    first, by_hand = wrong[0], started_by_hand(script)
    dropped = [c for c in dropped_devices(script) if names_rank(script, c)]
    without = "".join(
        f" {script.at(c)} makes {script.quote(c)} and drops it: that chooses a GPU within a `with` alone."
        for c in dropped[:1]
    )
    yield Hit(
        message=f"{script.at(first)} names the same GPU on every rank: {script.quote(first)}. All ranks of a "
        "machine then share one device while the others idle, and NCCL stops with “Multiple Ranks are using the same "
        f"GPU”.{without}",
        hint=OWN if any(asks_current(script, c) for c in _said(script, first)) else PIN,
        where=tuple(dict.fromkeys(script.location(n) for n in (*dropped, *wrong))),
        severity=Severity.HINT if by_hand else None,
        fix=None if by_hand else _fix(script, wrong),
    )


def _too_early(script: Script, early: list[ast.Call], setter: ast.Call) -> Hit:
    first, place = script.quote(early[0]), script.at(early[0])
    return Hit(
        message=f"{place} has {first} before {script.at(setter)} chooses the rank's GPU: it is GPU 0 on every rank.",
        hint=f"Move `{ast.unparse(setter)}` above {place}.",
        where=tuple(script.location(call) for call in early),
        severity=Severity.HINT if started_by_hand(script) else None,
    )


def _said(script: Script, node: ast.Call) -> list[ast.AST]:
    return [o for n, value in device_choices(script) if n is node for o in told_by(script, value)]


def _fix(script: Script, wrong: list[ast.Call]) -> Fix | None:
    named = [(node, how_named(script, value)) for node, value in device_choices(script) if node in wrong]
    numbers = [o for node, what in named for o in _said(script, node)
               if what is Named.FIXED or asks_current(script, o)]  # fmt: skip
    current = [n for n, what in named if what is Named.CURRENT and not set(_said(script, n)) & set(numbers)]
    setters = [node for node, what in named if what is Named.FIXED and sets_current(script, node)]
    return pinning(script, list(dict.fromkeys(numbers)), current, bool(setters))


def _masked(script: Script) -> bool:
    """`os.environ["CUDA_VISIBLE_DEVICES"] = …`: each rank may see a GPU of its own as number 0."""
    return any("CUDA_VISIBLE_DEVICES" in t.constants for t in script.trees)


def _masks(script: Script) -> Iterable[Hit]:
    """A choice of visible GPUs that comes too late, or beside device numbers by rank, which then don't exist."""
    writes = [w for w, variable in environment_writes(script) if variable == "CUDA_VISIBLE_DEVICES"]
    for write in writes:
        tree = script.names.tree(write)
        same = [c for c in tree.calls if tree.function(c) is tree.function(write) and starts_cuda(script, c)]
        early = [c for c in same if start(c) < start(write) and not script.guards.alone(c)]
        if early:
            yield Hit(
                message=f"{script.at(write)} chooses the visible GPUs, {script.quote(write)}, after "
                f"{script.quote(early[0])} ({script.at(early[0])}) has started CUDA. The choice comes too late and has "
                "no effect: every rank goes on seeing all GPUs, and `cuda` means number 0 on each of them.",
                hint="Drop the variable and pin each rank with `torch.cuda.set_device(local_rank)`; or set it before "
                "anything touches CUDA.",
                where=(script.location(write),),
            )
            continue
        numbered = [c for c, number in device_numbers(script) if script.ranks.kind(number)]
        if numbered and script.ranks.shows_rank(write.value, by_name=False):
            yield Hit(
                message=f"{script.at(write)} shows each rank one GPU only, {script.quote(write)}, and "
                f"{script.at(numbered[0])} then asks for it by the rank's number: {script.quote(numbered[0])}. What a "
                "rank sees is its number 0, so the others stop with “invalid device ordinal”.",
                hint="Do one of the two: drop the variable and use `local_rank`, or keep it and use device 0.",
                where=(script.location(write),),
            )


def check_run(evidence: Evidence) -> Observation:
    """Flag ranks of one node whose models live on the same GPU."""
    if not _gpus(evidence):
        return not_observable("Ranks trained on the CPU, where there is no device to choose.")
    if any("CUDA_VISIBLE_DEVICES" in f.text for f in evidence.script.submission.files):
        return not_observable(
            "The script chooses which GPUs a rank can see, so equal numbers may be different devices."
        )
    placed: dict[str, list[RankTrace]] = {}
    for rank in evidence.trace.ranks:
        for device in {d for w in rank.wraps for d in w.param_devices if d.startswith("cuda")}:
            placed.setdefault(device, []).append(rank)
    for device, sharing in sorted(placed.items()):
        # On several nodes ranks with the same local rank have equal device numbers by right.
        if len({r.start.local_rank if r.start else r.rank for r in sharing}) > 1:
            return flagged(_run_hit(device, sharing))
    pairs = ", ".join(f"rank {r.rank} on {d}" for d, found in sorted(placed.items()) for r in found[:8])
    return verified(f"Each rank trained on a device of its own: {pairs}.")


def _gpus(evidence: Evidence) -> bool:
    return any(d.startswith("cuda") for r in evidence.trace.ranks for w in r.wraps for d in w.param_devices)


def _run_hit(device: str, sharing: list[RankTrace]) -> Hit:
    wraps = [w for r in sharing for w in r.wraps if device in w.param_devices]
    return Hit(
        message=f"{ranks(r.rank for r in sharing)} keep their models on the same device, `{device}`. "
        f"{at(wraps[0].site)} wraps a model that was moved there without asking for the local rank: "
        "ranks share one GPU's memory and time while the others idle.",
        hint='Read `local_rank = int(os.environ["LOCAL_RANK"])`, then `torch.cuda.set_device(local_rank)` '
        "and `device_ids=[local_rank]`.",
        where=places(w.site for w in wraps),
        ranks=tuple(r.rank for r in sharing),
        details={"device": device},
        severity=Severity.ERROR,
    )
