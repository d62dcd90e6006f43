"""A checkpoint is loaded onto the GPU it was saved from.

## What it finds
`torch.load` of a checkpoint on every rank without `map_location`, or with one fixed GPU as `map_location`.

## Why it matters
torch puts tensors back where they were when they were saved, and rank 0 saved them on GPU 0. Without `map_location`
every rank loads its copy onto GPU 0, which runs out of memory as ranks are added, and a machine with fewer GPUs can't
load the file at all.

## Example
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("nccl")
network = torch.nn.Linear(4, 2).cuda()
network.load_state_dict(torch.load("last.pt"))
model = DistributedDataParallel(network)
```

## Use instead
```python
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("nccl")
network = torch.nn.Linear(4, 2).cuda()
network.load_state_dict(torch.load("last.pt", map_location="cpu"))
model = DistributedDataParallel(network)
```

## How it is seen
In the source: calls that all ranks make, in scripts that use GPUs. In the run, by the devices that loaded tensors came
to lie on; on the CPU it can't show and is a hint. Reference: "Save and Load Checkpoints",
https://pytorch.org/tutorials/intermediate/ddp_tutorial.html.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import at, listed, places, ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.calls.arguments import arguments_of
from grader.checks.source.files.rank_paths import of_others
from grader.checks.source.script import UNKNOWN, Script
from grader.checks.source.syntax.edits import Edits
from grader.model.finding import Severity
from grader.model.fix import Fix

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence
    from grader.model.trace import Event

SEVERITY = Severity.WARNING
ON_PROFILE = {"cpu": Severity.HINT}
_FIXED = re.compile(r"^cuda:\d+$")
_WEIGHTS = re.compile(r"ckpt|checkpoint|snapshot|model|weight|state|resume|pretrain|best|last", re.IGNORECASE)
_HINT = (
    'Load to the CPU, `torch.load(path, map_location="cpu")`, and let `load_state_dict` copy; or name the rank\'s own '
    'device, `map_location=f"cuda:{local_rank}"`.'
)


def check_source(script: Script) -> Iterable[Hit]:
    """Flag checkpoints that all ranks load without saying where to."""
    if not script.joins_group or not _uses_gpus(script):
        return
    for call in script.calls("torch.load"):
        given = script.argument(call, "map_location")
        path = script.given(call, "f")
        if path is not None and script.ranks.shows_rank(path):
            continue  # each rank's own file holds what that rank had on its own GPU
        if given is UNKNOWN or script.guards.partial(call) is not None or script.guards.alone(call):
            continue
        if given is None and _is_checkpoint(script, call):
            what = f"loads a checkpoint without `map_location`: {script.quote(call)}. Every rank"
        elif given is not None and _fixed(script, given):
            what = f"loads onto one fixed GPU on every rank: {script.quote(call)}. Every rank of a machine"
        else:
            continue
        if script.guards.called_by_some(call):
            continue
        yield Hit(
            message=f"{script.at(call)} {what} puts its copy of the tensors onto the same GPU, usually GPU 0, whose "
            "memory they share.",
            hint=_HINT,
            where=(script.location(call),),
            fix=_fix(script, call),
            severity=Severity.HINT if given is None and of_others(script, call) else None,
        )


def _fix(script: Script, call: ast.Call) -> Fix | None:
    edits = Edits(script)
    if not _reaches_model(script, call):
        edits.give_up()
    edits.give(call, "map_location", '"cpu"')
    return edits.fix("Loads to the CPU, from where `load_state_dict` copies to each rank's own device.")


def _uses_gpus(script: Script) -> bool:
    named = any(c.startswith(("cuda", "nccl")) for t in script.trees for c in t.constants)
    ids = (script.argument(w, "device_ids") for w in script.training.wraps)
    by_number = any(i is not None and script.values.constant(i) is not None for i in ids)
    return named or by_number or bool(script.mentioned("cuda"))


def _fixed(script: Script, given: ast.expr) -> bool:
    for origin in script.values.origins(given):
        if (
            isinstance(origin, ast.Call)
            and script.names.qualified(origin.func) == "torch.device"
            and origin.args
        ):
            return _fixed(script, origin.args[0]) and len(origin.args) == 1
        if isinstance(origin, ast.Constant) and isinstance(origin.value, str) and _FIXED.match(origin.value):
            return True
    return False


def _is_checkpoint(script: Script, call: ast.Call) -> bool:
    """What is loaded reaches `load_state_dict`, or is called a checkpoint; tensors of a data set lie on the CPU."""
    if _reaches_model(script, call):
        return True
    tree = script.names.tree(call)
    above = tree.parent.get(call)
    names = [ast.unparse(t) for t in above.targets] if isinstance(above, ast.Assign) else []
    path = script.argument(call, "f")
    return (
        any(_WEIGHTS.search(n) for n in names)
        and path is not None
        and bool(_WEIGHTS.search(ast.unparse(path)))
    )


def _reaches_model(script: Script, call: ast.Call) -> bool:
    for load in script.called("load_state_dict"):
        if isinstance(load.func, ast.Attribute):
            parts = arguments_of(load)
            if any(call in script.values.closure(p) for p in parts):
                return True
    return False


def check_run(evidence: Evidence) -> Observation:
    """Flag ranks whose loaded tensors came to lie on another rank's GPU."""
    loads = [(r.rank, e) for r in evidence.trace.ranks for e in r.events("load")]
    if not loads:
        return not_observable("No rank loaded a checkpoint.")
    own = {r.rank: {d for w in r.wraps for d in w.param_devices} for r in evidence.trace.ranks}
    wrong = [
        (n, e)
        for n, e in loads
        if any(d.startswith("cuda") and own[n] and d not in own[n] for d in _devices(e))
    ]
    if wrong:
        first = wrong[0][1]
        placed = sorted({d for _, e in wrong for d in _devices(e)})
        return flagged(
            Hit(
                message=f"{ranks(n for n, _ in wrong)} loaded `{first.fields.get('path', '')}` at "
                f"{at(first.site, 'an unknown line')} onto {listed(placed)}, a GPU that is not theirs.",
                hint=_HINT,
                where=places(e.site for _, e in wrong),
                ranks=tuple(n for n, _ in wrong),
                details={"devices": {str(n): list(_devices(e)) for n, e in wrong}},
            )
        )
    if not any(d.startswith("cuda") for _, e in loads for d in _devices(e)):
        told = all(e.fields.get("map_location") for _, e in loads)
        if told:
            return verified("Every load of a checkpoint said where to: the tensors came to lie on the CPU.")
        return not_observable(
            "What was loaded had been saved from the CPU, where no rank is in another's way."
        )
    return verified("Each rank loaded its checkpoint onto its own device.")


def _devices(event: Event) -> tuple[str, ...]:
    found = event.fields.get("devices")
    return tuple(d for d in found if isinstance(d, str)) if isinstance(found, list | tuple) else ()
