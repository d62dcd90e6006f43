"""The ranks never join a process group.

## What it finds
A script that wraps its model, shards its data or calls collectives, or that reads its rank from the launcher's
environment, without ever starting a process group.

## Why it matters
`torchrun` only starts processes; they meet in `init_process_group`. Without it `DistributedDataParallel`, a
`DistributedSampler` and every collective stop with an error, and a script that uses none of them is N independent
trainings that happen to share a folder.

## Example
```python
import os
import torch
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
sampler = DistributedSampler(train_set)
loader = DataLoader(train_set, batch_size=64, sampler=sampler)
model = DistributedDataParallel(build_model().cuda(), device_ids=[local_rank])
```

## Use instead
```python
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
sampler = DistributedSampler(train_set)
loader = DataLoader(train_set, batch_size=64, sampler=sampler)
model = DistributedDataParallel(build_model().cuda(), device_ids=[local_rank])
...
dist.destroy_process_group()
```

## How it is seen
In the source: no reachable call of `init_process_group`, in any file that was handed in, and none of a library's
function that may make it, such as `timm.utils.init_distributed_device`. In the run: no rank reports a group, or fewer
ranks than were started. Reference: `torch.distributed`, "Initialization" (https://pytorch.org/docs/stable/distributed.html#initialization).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.needed_lines import START_GROUP
from grader.checks.phrases import at, count, first_known, place, places, ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.calls.missing_modules import may_form_group
from grader.checks.source.collectives.collective_calls import ALL
from grader.checks.source.collectives.late_groups import moved_up
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import start
from grader.checks.source.training_loops import SAMPLER
from grader.model.finding import EvidenceKind, Severity
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.model.run import RankRecord
    from grader.model.trace import RankTrace

SEVERITY = Severity.ERROR
NEEDS = Precondition.RANKS
EXPLAINED_BY = ("DIST006",)
_OTHER_STARTS = ("init_process_group", "init_device_mesh", "init_distributed", "init_rpc")


def check_source(script: Script) -> Iterable[Hit]:
    """Flag the first line that needs a group where nothing reachable starts one."""
    if not script.mentions_distributed or script.training.framework or may_form_group(script):
        return
    starts = [n for name in _OTHER_STARTS for n in script.mentioned(name)]
    if any(script.may_run(node) for node in starts):
        return
    first = _first_need(script)
    if first is None:
        return
    uncalled = (
        f" `init_process_group` stands in {script.at(starts[0])}, but nothing calls that function."
        if starts
        else ""
    )
    yield Hit(
        message=f"{script.at(first)} has {script.quote(first)}, but no rank ever joins a process group.{uncalled} "
        "`torchrun` only starts the processes; until they meet in `init_process_group` each of them trains "
        "alone or stops.",
        hint=f"Call `{START_GROUP}` before the first sampler, wrapper or collective; torchrun has set everything it "
        "needs.",
        where=(script.location(first),),
    )


def _first_need(script: Script) -> ast.AST | None:
    """What asks for a group most plainly: a wrapper, a sampler, a collective, or a rank of the launcher's."""
    kinds: list[list[ast.AST]] = [
        list(script.training.wraps),
        [s for s in script.calls(SAMPLER) if not _is_told(script, s)],
        [c for name in ALL for c in script.calls(name)],
        _environment_reads(script) if script.training.trains else [],
    ]
    # A line that no path of calls leads to may belong to a library whose caller has started the group.
    reached = ([n for n in kind if script.guards.on_every_rank(n)] for kind in kinds)
    needs = next((k for k in reached if k), [])
    return min(
        needs,
        key=lambda n: (script.location(n).path != "train.py", script.location(n).path, start(n)),
        default=None,
    )


def _is_told(script: Script, sampler: ast.Call) -> bool:
    return all(script.argument(sampler, name) is not None for name in ("num_replicas", "rank"))


def _environment_reads(script: Script) -> list[ast.AST]:
    found: list[ast.AST] = []
    for tree in script.trees:
        for node in tree.attribute_loads.get("environ", ()):
            above = tree.parent[node]
            if script.ranks.environment(above) in ("RANK", "WORLD_SIZE"):
                found.append(above)
    return found


def check_run(evidence: Evidence) -> Observation:
    """Flag runs of several ranks in which ranks trained, or ended, without a process group."""
    joined = [r.rank for r in evidence.trace.ranks if any(g.op == "init" for g in r.groups)]
    if len(joined) == evidence.trace.world_size:
        group = next(g for r in evidence.trace.ranks for g in r.groups if g.op == "init")
        return verified(
            f"All {len(joined)} ranks joined a process group ({group.backend or 'unknown backend'})."
        )
    failed = [
        r
        for r in evidence.record.ranks
        if r.failure and "process group has not been init" in r.failure.message
    ]
    if failed:
        return flagged(_failed_hit(evidence.script, failed))
    alone = [r for r in evidence.trace.ranks if r.rank not in joined]
    # A rank that failed on its way there says nothing about what it would have done.
    over = {r.rank for r in evidence.record.ranks if r.exit_code == 0 and not r.killed_by_judge}
    guilty = [r for r in alone if r.steps or r.rank in over]
    if not guilty or any(r.start is None for r in guilty):
        return not_observable("The run ended before ranks could join a process group.")
    return flagged(_run_hit(evidence, guilty, joined))


def _failed_hit(script: Script, failed: list[RankRecord]) -> Hit:
    frames = [next((f for f in r.failure.frames if f.in_submission), None) for r in failed if r.failure]
    reached = places([f for r in failed if r.failure for f in r.failure.frames if f.in_submission])
    hint, fix = moved_up(script, reached)
    created = "was there yet" if hint else "was created"
    return Hit(
        message=(
            f"{ranks(r.rank for r in failed)} stopped at {at(frames[0], 'an unknown line')}: what stands there "
            f"needs a process group, and none {created}. Without a group ranks know nothing of each other."
        ),
        hint=hint or f"Call `{START_GROUP}` on every rank before this line.",
        fix=fix,
        where=places(frames),
        ranks=tuple(r.rank for r in failed),
        details={"messages": {str(r.rank): r.failure.message[:400] for r in failed if r.failure}},
        evidence=EvidenceKind.OUTSIDE,
    )


def _run_hit(evidence: Evidence, guilty: list[RankTrace], joined: list[int]) -> Hit:
    steps = first_known([s.site for r in guilty for s in r.steps])
    others = f", though {ranks(joined).lower()} did" if joined else ""
    trained = sum(1 for r in guilty if r.steps)
    worked = f"{at(steps)} trained on {count(trained, 'rank')} all the same. " if steps else ""
    script = evidence.script
    # Who wraps only where there is a group already, and forms none, trains as if nothing were distributed.
    asked = () if joined else tuple(script.location(n) for n in script.mentioned("is_initialized"))
    if asked:
        line = f"`{asked[0].path}:{asked[0].line}`"
        worked += f"{line} asks for a group that nothing forms, and is told that there is none. "
    wrap = "" if script.training.wraps else ", then wrap the model in `DistributedDataParallel`"
    start, place_of_call = START_GROUP, "the script on every rank"
    if evidence.facts.launcher == "python":
        start = f"{start.removesuffix(')')}, rank=rank, world_size=world_size)"
        place_of_call = "what every rank runs"
    return Hit(
        message=(
            f"{ranks(r.rank for r in guilty)} of {evidence.trace.world_size} never joined a process group{others}. "
            f"{worked}Without a group ranks know nothing of each other: each is a training run of its own."
        ),
        hint=f"Call `{start}` at the start of {place_of_call}{wrap}.",
        where=(*asked[:1], *place(steps)),
        ranks=tuple(r.rank for r in guilty),
        details={
            "joined": joined,
            "steps_by_rank": {str(r.rank): len(r.steps) for r in evidence.trace.ranks},
        },
    )
