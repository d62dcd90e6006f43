"""The model is moved after it was wrapped.

## What it finds
`.to(device)`, `.cuda()` or `.cpu()` on a model that `DistributedDataParallel` has wrapped already, and `device_ids`
given for a model that was never moved to a GPU.

## Why it matters
The wrapper looks at the parameters once, when it is built: it registers hooks on them, sorts them into buckets on their
device and checks `device_ids` against it. Parameters that lie on the CPU then stop it with an error, and parameters
that move later are no longer those whose gradients it averages.

## Example
```python
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

local_rank = int(os.environ["LOCAL_RANK"])
dist.init_process_group("nccl")
model = DistributedDataParallel(torch.nn.Linear(4, 2))
model = model.to(torch.device("cuda", local_rank))
```

## Use instead
```python
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

local_rank = int(os.environ["LOCAL_RANK"])
dist.init_process_group("nccl")
model = torch.nn.Linear(4, 2).to(torch.device("cuda", local_rank))
model = DistributedDataParallel(model, device_ids=[local_rank])
```

## How it is seen
In the source, by what is moved and whether it was wrapped before. In the run, by a wrapper that refused the parameters'
device, and on GPUs by where parameters lay when they were wrapped. A model that was on its device before may be told so
again. Reference: https://pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import at, places, ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.collectives.collective_calls import INIT
from grader.checks.source.devices.tensor_placement import Placement
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import DISPLAYS, ancestors, start, walk
from grader.model.finding import EvidenceKind, Severity
from grader.model.fix import Fix
from grader.model.precondition import Precondition

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.ERROR
NEEDS = Precondition.GPUS
_REFUSED = re.compile(
    r"device_ids and output_device arguments only work with|module must have its parameters|on device: cpu"
    r"|No backend type associated with device type cpu"
)
_HINT = (
    "Move first, wrap then: `model = model.to(device)`, `model = DistributedDataParallel(model, "
    "device_ids=[local_rank])`; on the CPU leave `device_ids` out."
)


def check_source(script: Script) -> Iterable[Hit]:
    """Flag moves of wrapped models, and device numbers for models on the CPU."""
    if script.training.framework:
        return
    placement = Placement(script)
    for wrap in script.training.wraps:
        module = script.given(wrap, "module")
        if module is None or script.guards.alone(wrap):
            continue
        placed = placement.default_chosen or placement.placed(module)
        moves = [
            m
            for m in placement.moves(wrap)
            if _later(script, m, wrap) and (_amid_training(script, m) if placement.to_cpu(m) else not placed)
        ]
        if moves:
            yield _moved(script, wrap, min(moves, key=start), placement)
        elif not placed and _numbered(script, wrap) and _built_here(script, module):
            yield Hit(
                message=f"{script.at(wrap)} gives `device_ids` for a model that nothing has moved to a GPU: "
                f"{script.quote(wrap)}. The wrapper finds its parameters on the CPU and stops with an error.",
                hint=_HINT,
                where=(script.location(wrap),),
                fix=_moving_first(script, wrap, module),
            )


def _moved(script: Script, wrap: ast.Call, move: ast.Call, placement: Placement) -> Hit:
    away = placement.to_cpu(move)
    why = (
        "in the midst of training its parameters leave the device that the wrapper's buckets and hooks were built for"
        if away
        else "the wrapper saw its parameters where they were before, and set up its buckets and checks for that place"
    )
    return Hit(
        message=f"{script.at(move)} moves a model that {script.at(wrap)} has wrapped already: {script.quote(move)}; "
        f"{why}.",
        hint="Copy instead of moving: `{k: v.cpu() for k, v in model.module.state_dict().items()}`."
        if away
        else _HINT,
        where=(script.location(move),),
        fix=None if away else _moved_earlier(script, wrap, move),
    )


def _moving_first(script: Script, wrap: ast.Call, module: ast.expr) -> Fix | None:
    """The model moved to the one device that its wrapper is told; where the ranks may be on CPUs, nobody can tell."""
    edits, ids = Edits(script), script.argument(wrap, "device_ids")
    backends = [script.argument(call, "backend") for call in script.calls(INIT)]
    on_gpus = bool(backends) and all(script.values.constant(backend) == "nccl" for backend in backends)
    if not on_gpus or not isinstance(ids, ast.List) or len(ids.elts) != 1:
        return None
    edits.append(module, f".to({edits.text(ids.elts[0])})")
    return edits.fix("Moves the model to its device before it is wrapped.")


def _moved_earlier(script: Script, wrap: ast.Call, move: ast.Call) -> Fix | None:
    """A move taken from the wrapper to the model inside it."""
    edits, tree, module = Edits(script), script.names.tree(wrap), script.argument(wrap, "module")
    func, statement = move.func, tree.statement(move)
    if (
        module is None
        or not isinstance(func, ast.Attribute)
        or tree.function(move) is not tree.function(wrap)
    ):
        return None
    arguments = ", ".join(edits.text(part) for part in (*move.args, *move.keywords))
    names = {n.id for part in (*move.args, *move.keywords) for n in walk(part) if isinstance(n, ast.Name)}
    if func.value is wrap:
        edits.cut(wrap, move)
    elif isinstance(statement, ast.Expr) and statement.value is move and _known_before(script, names, wrap):
        edits.remove(statement)
    else:
        return None
    edits.append(module, f".{func.attr}({arguments})")
    return edits.fix("Moves the model to its device before it is wrapped.")


def _known_before(script: Script, names: set[str], wrap: ast.Call) -> bool:
    """Whether names mean at the wrap what they mean later."""
    tree = script.names.tree(wrap)
    found = [d for name in names for d in script.names.lookup(name, wrap)]
    return all(d.since <= start(wrap) or tree.function(d.node) is not tree.function(wrap) for d in found)


def _later(script: Script, move: ast.Call, wrap: ast.Call) -> bool:
    """Whether a move comes after the wrap: later in the same function, or in one that gets the wrapped model."""
    if script.names.tree(move).inside(wrap, move):
        return True  # `DDP(model).to(device)`
    if script.names.tree(move).function(move) is script.names.tree(wrap).function(wrap):
        return start(move) > start(wrap) and not script.names.tree(move).inside(move, wrap)
    return True


def _amid_training(script: Script, move: ast.Call) -> bool:
    """Inside a loop that trains: what is moved away has to come back."""
    tree = script.names.tree(move)
    above = ancestors(tree.parent, move)
    return any(isinstance(a, ast.For | ast.While) and script.training.runs_backward(a) for a in above)


def _numbered(script: Script, wrap: ast.Call) -> bool:
    ids = script.given(wrap, "device_ids")
    if ids is None:
        return False
    origins = script.values.origins(ids)
    return bool(origins) and all(isinstance(o, DISPLAYS) and o.elts for o in origins)


def _built_here(script: Script, module: ast.expr) -> bool:
    """A model whose making is in view: a class of the submission, or one of torch's or torchvision's."""
    origins = script.values.origins(module)
    if not origins:
        return False
    for origin in origins:
        itself = origin is not module and script.names.tree(origin).inside(module, origin)
        if itself or not isinstance(origin, ast.Call):
            return False
        name = script.names.qualified(origin.func) or ""
        if script.graph.built_class(origin) is None and not name.startswith(
            ("torch.nn.", "torchvision.models.")
        ):
            return False
    return True


def check_run(evidence: Evidence) -> Observation:
    """Flag wrappers that refused where the parameters were, and models wrapped on the CPU beside NCCL."""
    lines = {(evidence.script.location(w).path, n) for w in evidence.script.training.wraps
             for n in range(w.lineno, (w.end_lineno or w.lineno) + 1)}  # fmt: skip
    refused = []
    for rank in evidence.record.ranks:
        frame = next((f for f in rank.failure.frames if f.in_submission), None) if rank.failure else None
        known = frame is not None and (frame.path, frame.line) in lines
        if rank.failure is not None and known and _REFUSED.search(rank.failure.message):
            refused.append((rank, frame))
    if refused:
        words = refused[0][0].failure.message.strip().splitlines()[0] if refused[0][0].failure else ""
        return flagged(
            Hit(
                message=f"{ranks(r.rank for r, _ in refused)} stopped at {at(refused[0][1])}, where the model is "
                f"wrapped: “{words[:200]}”. The parameters were not on the device that the wrapper was told.",
                hint=_HINT,
                where=places(f for _, f in refused),
                ranks=tuple(r.rank for r, _ in refused),
                details={"message": words[:400]},
                evidence=EvidenceKind.OUTSIDE,
            )
        )
    wraps = [w for r in evidence.trace.ranks for w in r.wraps if w.kind == "ddp"]
    if not wraps:
        return not_observable("No model was wrapped.")
    if not any(d.startswith("cuda") for w in wraps for d in w.param_devices):
        return not_observable("Everything stayed on the CPU, where moving after wrapping changes nothing.")
    behind = [
        (r.rank, w)
        for r in evidence.trace.ranks
        for w in r.wraps
        if w.kind == "ddp" and "cpu" in w.param_devices
    ]
    if behind:
        first = behind[0][1]
        return flagged(
            Hit(
                message=f"{ranks(n for n, _ in behind)} wrapped a model with parameters on the CPU at "
                f"{at(first.site, 'an unknown line')}, while others were on a GPU.",
                hint=_HINT,
                where=places(w.site for _, w in behind),
                ranks=tuple(n for n, _ in behind),
            )
        )
    return verified("All models were on their GPU when they were wrapped.")
