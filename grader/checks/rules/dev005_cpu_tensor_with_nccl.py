"""A collective is given something that its backend can't send.

## What it finds
Tensors made without a device in a collective of a NCCL group, Python numbers and tuples in any collective, and gloo
chosen for a model on a GPU.

## Why it matters
NCCL sends memory of GPUs and nothing else: a tensor from `torch.tensor(loss)` lies on the CPU and stops the run with
"No backend type associated with device type cpu". It runs well with gloo on a machine without GPUs, so it shows only
on the cluster. gloo does take tensors from GPUs, by way of the CPU, and is many times slower than NCCL.

## Example
```python
import torch
import torch.distributed as dist

dist.init_process_group("nccl")
total = torch.tensor([correct, seen])
dist.all_reduce(total)
```

## Use instead
```python
import os
import torch
import torch.distributed as dist

dist.init_process_group("nccl")
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
total = torch.tensor([correct, seen], device=device)
dist.all_reduce(total)
```

## How it is seen
In the source, arguments are followed to where they were made and moved. In the run, by the error of the rank that
stopped. On the CPU profile, where the group is gloo's, it can't show and is a hint. Reference: "Which backend to use?",
https://pytorch.org/docs/stable/distributed.html#which-backend-to-use.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import at, places, ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.collectives.collective_calls import INIT
from grader.checks.source.devices.tensor_placement import MadeOn, Placement
from grader.checks.source.script import Script
from grader.model.finding import EvidenceKind, Severity
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.WARNING
ON_PROFILE = {"gpu": Severity.ERROR, "cpu": Severity.HINT}
NEEDS = Precondition.GPUS
_TENSORS = {
    "all_reduce": ("tensor",), "broadcast": ("tensor",), "reduce": ("tensor",), "all_gather": ("tensor_list", "tensor"),
    "gather": ("tensor",), "scatter": ("tensor",), "all_gather_into_tensor": ("output_tensor", "input_tensor"),
    "reduce_scatter_tensor": ("output", "input"),
}  # fmt: skip
_ON_CPU = re.compile(r"No backend type associated with device type cpu|Tensors must be CUDA")
_NO_TENSOR = re.compile(
    r"Invalid function argument|[Ee]xpected parameter|'(float|int|tuple)' object has no attribute"
)
_HINT = (
    "Make the tensor where the group can send it: `torch.tensor([…], device=device)` with "
    '`device = torch.device("cuda", local_rank)`; on the CPU with gloo the same line works with `device` on the CPU.'
)


def check_source(script: Script) -> Iterable[Hit]:
    """Flag tensors on the CPU in NCCL groups, arguments that are no tensors, and gloo for models on GPUs."""
    if script.training.framework:
        return
    backends = _backends(script)
    placement = Placement(script)
    for call, name in script.collectives.direct.items():
        if script.guards.alone(call):
            continue
        for parameter in _TENSORS.get(name, ()):
            given = script.argument(call, parameter)
            made = placement.of(given) if given is not None else MadeOn.UNKNOWN
            if made is MadeOn.NUMBER and given is not None:
                yield _no_tensor(script, call, given)
                break
            if made is MadeOn.ON_CPU and given is not None and "nccl" in backends:
                yield _on_cpu(script, call, given)
                break
    yield from _gloo(script, backends)


def _backends(script: Script) -> set[str]:
    """What the group may be started with; empty where it can't be told, or where torch chooses for each device."""
    found: set[str] = set()
    for call in script.calls(INIT):
        given = script.given(call, "backend")
        if given is None:
            return set()
        for origin in script.values.origins(given):
            if not isinstance(origin, ast.Constant) or not isinstance(origin.value, str):
                return set()
            found.add(origin.value.lower())
    return found


def _on_cpu(script: Script, call: ast.Call, given: ast.expr) -> Hit:
    return Hit(
        message=f"{script.at(call)} gives NCCL a tensor that lies on the CPU, {script.quote(given)}: "
        f"{script.quote(call)}. NCCL sends GPU memory only, so the call stops with “No backend type associated with "
        "device type cpu”; with gloo nothing shows.",
        hint=_HINT,
        where=(script.location(call),),
    )


def _no_tensor(script: Script, call: ast.Call, given: ast.expr) -> Hit:
    return Hit(
        message=f"{script.at(call)} gives a collective {script.quote(given)}, which is no tensor: "
        f"{script.quote(call)}. Collectives work in the tensor's own memory, so the call stops with a TypeError.",
        hint="Put the number into a tensor, reduce that, and read it: `t = torch.tensor([x], device=device)`, "
        "`dist.all_reduce(t)`, `x = t.item()`.",
        where=(script.location(call),),
        severity=Severity.ERROR,
    )


def _gloo(script: Script, backends: set[str]) -> Iterable[Hit]:
    if backends != {"gloo"} or not script.training.wraps:
        return
    for wrap in script.training.wraps:
        ids = script.given(wrap, "device_ids")
        numbered = ids is not None and all(
            isinstance(o, ast.List | ast.Tuple) and o.elts for o in script.values.origins(ids)
        )  # fmt: skip
        module = script.given(wrap, "module")
        if numbered or (module is not None and _on_gpu(script, module)):
            start = script.calls(INIT)[0]
            yield Hit(
                message=f"{script.at(start)} starts a gloo group, {script.quote(start)}, and {script.at(wrap)} wraps a "
                "model on a GPU: every gradient goes through the CPU's memory, many times slower than with NCCL.",
                hint='Start the group with "nccl" where there are GPUs: `backend = "nccl" if torch.cuda.is_available() '
                'else "gloo"`.',
                where=(script.location(start),),
                severity=Severity.HINT,
            )
            return


def _on_gpu(script: Script, module: ast.expr) -> bool:
    for node in script.values.closure(module):
        method = node.func if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
        if method is not None and method.attr == "cuda" and script.names.qualified(method) is None:
            return True
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and re.match(r"^cuda(:\d+)?$", text):
            return True
    return False


def check_run(evidence: Evidence) -> Observation:
    """Flag ranks that stopped in a collective because of what they gave it, and gloo groups for models on GPUs."""
    from grader.checks.run.call_counts import num_calls

    for pattern, what in (
        (_ON_CPU, "a tensor that lies on the CPU"),
        (_NO_TENSOR, "something that is no tensor"),
    ):
        stopped = []
        for rank in evidence.record.ranks:
            frames = rank.failure.frames if rank.failure is not None else ()
            inside = any("distributed_c10d" in f.path or "c10d_logger" in f.path for f in frames)
            if rank.failure is not None and inside and pattern.search(rank.failure.message):
                stopped.append((rank, next((f for f in frames if f.in_submission), None)))
        if stopped:
            words = stopped[0][0].failure.message.strip().splitlines()[0] if stopped[0][0].failure else ""
            return flagged(
                Hit(
                    message=f"{ranks(r.rank for r, _ in stopped)} stopped at {at(stopped[0][1], 'an unknown line')}: "
                    f"the collective was given {what} (“{words[:160]}”).",
                    hint=_HINT,
                    where=places(f for _, f in stopped),
                    ranks=tuple(r.rank for r, _ in stopped),
                    details={"message": words[:400]},
                    severity=Severity.ERROR,
                    evidence=EvidenceKind.OUTSIDE,
                )
            )
    slow = [
        (r, w)
        for r in evidence.trace.ranks
        for w in r.wraps
        if any(g.backend == "gloo" for g in r.groups) and any(d.startswith("cuda") for d in w.param_devices)
    ]
    if slow:
        first = slow[0][1]
        return flagged(
            Hit(
                message=f"{ranks(r.rank for r, _ in slow)} averaged gradients of a model on {first.param_devices[0]} "
                f"with gloo ({at(first.site, 'an unknown line')} wraps it): they go through the CPU's memory.",
                hint='Start the group with `dist.init_process_group("nccl")` where there are GPUs.',
                where=places(w.site for _, w in slow),
                ranks=tuple(r.rank for r, _ in slow),
                severity=Severity.HINT,
            )
        )
    called = num_calls(evidence.trace)
    if any("nccl" in g.backend for r in evidence.trace.ranks for g in r.groups) and called:
        return verified(f"NCCL took all it was given ({called:,} calls by name).")
    return not_observable("The group was not NCCL's, so what NCCL would refuse did not show.")
