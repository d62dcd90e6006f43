"""Shards of a model that one rank sends to all: each rank's own rows are replaced by the rows of that rank.

Only parts that a rank holds alone are meant: a group that holds copies may send them among its ranks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from grader.checks.source.causes import CauseInText
from grader.checks.source.gradients.updates import reads_gradient
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import name_of

_SHARDS = ("fully_shard", "FullyShardedDataParallel")
_LOCAL = ("to_local", "_local_tensor")
_WEIGHTS = ("parameters", "named_parameters", "state_dict")
_COPIES = ("HYBRID_SHARD", "_HYBRID_SHARD_ZERO2", "NO_SHARD")


def broadcast_shards(script: Script) -> Iterator[CauseInText]:
    """Each broadcast of a parameter's local part, where models are sharded over all ranks."""
    if not script.called(*_SHARDS) or any(script.mentioned(word) for word in _COPIES):
        return
    if script.calls("torch.distributed.device_mesh.init_device_mesh", "torch.distributed.init_device_mesh"):
        return  # over one of two dimensions there are copies
    for name, call in script.calls_under("torch.distributed."):
        given = call.args[0] if call.args else script.given(call, "tensor")
        grouped = script.argument(call, "group") is not None
        if name.rpartition(".")[2] != "broadcast" or grouped or given is None:
            continue
        parts = script.values.closure(given)
        local = next(
            (p for p in parts if isinstance(p, ast.Call | ast.Attribute) and name_of(p) in _LOCAL), None
        )
        weights = any(isinstance(p, ast.Call) and name_of(p) in _WEIGHTS for p in parts)
        if local is None or not weights or any(map(reads_gradient, parts)):
            continue
        shard = script.called(*_SHARDS)[0]
        yield CauseInText(
            (call,),
            f"{script.quote(call)} at {script.at(call)} sends one rank's shard of each parameter to all. Shards are "
            "other rows of it on each rank: all ranks then hold that rank's rows in place of their own, and the model "
            "consists of the same rows again and again.",
            f"Make the weights equal before {script.at(shard)} shards them, while each rank still has the whole: "
            "`for p in model.parameters(): dist.broadcast(p.data, src=0)`; or `torch.manual_seed(0)` on all ranks "
            "before the model is made. Leave the shards alone.",
        )
