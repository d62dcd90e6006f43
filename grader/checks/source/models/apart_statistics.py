"""BatchNorm's running statistics that each rank keeps to itself, although all of them validate a part each.

Told only where DDP is told not to send buffers and nothing else in the text may bring them together, freeze them or
load others.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.data.loader_sharding import Shared
from grader.checks.source.metrics.validation_loops import validations
from grader.checks.source.script import Script

_TOGETHER = (
    "SyncBatchNorm", "convert_sync_batchnorm", "update_bn", "AveragedModel", "FrozenBatchNorm2d", "buffers",
    "named_buffers", "running_mean", "running_var", "track_running_stats",
)  # fmt: skip
"""Words of a text that sees to running statistics itself."""


def apart(script: Script) -> Iterable[tuple[ast.Call, ast.Call]]:
    """Wraps that send no buffers of a network with BatchNorm, and a forward pass of all ranks over their parts."""
    silent = [
        w
        for w in script.training.wraps
        if script.values.constant(script.argument(w, "broadcast_buffers")) is False
    ]
    if not silent or brings_together(script):
        return
    divided = {d.loop for d in script.training.draws if _all_divided(script, d.loaders)}
    passes = [forward for loop, forward, _ in validations(script) if loop in divided]
    common = [forward for forward in passes if script.replicas.on_some_ranks(forward) is None]
    for wrap in silent:
        module = script.argument(wrap, "module")
        if isinstance(module, ast.expr) and script.networks.normalises_alone(module):
            yield from ((wrap, forward) for forward in common[:1])


def brings_together(script: Script) -> bool:
    """Whether anything in the text may make running statistics equal on all ranks, or keep them as they were."""
    if script.names.foreign or script.training.framework or script.averaging.sent_by_hand:
        return True
    if any(script.mentioned(word) for word in _TOGETHER):
        return True
    loads = [
        c
        for c in script.called("load_state_dict")
        if isinstance(c.func, ast.Attribute) and not script.updates.is_optimizer(c.func.value)
    ]
    if any(script.replicas.after(wrap, c) for wrap in script.training.wraps for c in loads):
        return True
    tests = [c for c in script.calls("isinstance") if len(c.args) == 2]
    return any("BatchNorm" in ast.unparse(c.args[1]) for c in tests)


def send_before(script: Script) -> str:
    """What to write before a validation."""
    networks = {
        ast.unparse(n) for loop, _, n in validations(script) if isinstance(n, ast.Name | ast.Attribute)
    }
    network = networks.pop() if len(networks) == 1 else "model"
    return (
        "Before each validation give all ranks the statistics that will be saved: "
        f"`for buffer in {network}.buffers(): dist.broadcast(buffer, src=0)`. Or leave out `broadcast_buffers=False`, "
        "and validate through the wrapper."
    )


def _all_divided(script: Script, loaders: Iterable[ast.Call]) -> bool:
    known = [script.sharding.of(loader) for loader in loaders]
    return bool(known) and all(k is Shared.YES for k in known)
