"""Calls of libraries that every rank has to make together: sharded models, distributed checkpoints, Accelerate, Fabric.

Whoever calls one of these on rank 0 alone waits for the others as in a bare `barrier`. Calls of these libraries that
one rank may make alone (`accelerator.save`, `fabric.print`) are not among them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.call_sites import Calls
from grader.checks.source.library_names import Names
from grader.checks.source.networks import Networks
from grader.checks.source.syntax_nodes import VARIABLES, name_of
from grader.checks.source.syntax_tree import Tree
from grader.checks.source.value_sources import Values

_FSDP = "torch.distributed.fsdp.FullyShardedDataParallel"
# Each of these meets the other ranks, whatever the model is wrapped in.
_FUNCTIONS = (
    "torch.distributed.checkpoint.save", "torch.distributed.checkpoint.load",
    "torch.distributed.checkpoint.async_save", "torch.distributed.checkpoint.save_state_dict",
    "torch.distributed.checkpoint.load_state_dict", f"{_FSDP}.summon_full_params", f"{_FSDP}.optim_state_dict",
    f"{_FSDP}.full_optim_state_dict", f"{_FSDP}.scatter_full_optim_state_dict", "horovod.torch.allreduce",
    "horovod.torch.broadcast_parameters", "horovod.torch.broadcast_optimizer_state", "horovod.torch.allgather",
)  # fmt: skip
# These do where parameters are sharded, and only there.
_OF_SHARDED = tuple(
    f"torch.distributed.checkpoint.state_dict.{name}"
    for name in (
        "get_model_state_dict", "get_state_dict", "get_optimizer_state_dict", "set_model_state_dict", "set_state_dict",
    )
)  # fmt: skip
_METHODS_OF_SHARDED = {
    "state_dict",
    "clip_grad_norm_",
    "generate",
    "load_state_dict",
    "forward",
    "full_tensor",
}
# Object's maker → methods.
_METHODS: dict[tuple[str, ...], set[str]] = {
    ("accelerate.Accelerator",): {
        "wait_for_everyone", "save_state", "load_state", "gather", "gather_for_metrics", "reduce", "prepare",
        "pad_across_processes",
    },
    ("lightning.fabric.Fabric", "lightning.Fabric", "lightning_fabric.Fabric"): {
        "save", "load", "barrier", "all_gather", "all_reduce", "broadcast", "setup", "setup_module", "clip_gradients",
    },
    ("pytorch_lightning.Trainer", "lightning.pytorch.Trainer", "lightning.Trainer"): {"save_checkpoint"},
    ("deepspeed.initialize", "deepspeed.init_inference"): {"save_checkpoint", "load_checkpoint"},
}  # fmt: skip
_CALLED_AFTER = {
    "accelerator": "accelerate.Accelerator",
    "fabric": "lightning.fabric.Fabric",
    "model_engine": "deepspeed.initialize",
}


def library_calls(
    trees: tuple[Tree, ...], names: Names, calls: Calls, values: Values, modules: Networks
) -> Iterable[tuple[ast.Call, str]]:
    """Such calls with the name that their reader knows them by."""
    for dotted in _FUNCTIONS:
        for call in calls.named(dotted):
            yield call, dotted.rpartition(".")[2]
    wanted = {m for methods in _METHODS.values() for m in methods}
    imported = {i.split(".")[0] for t in trees for i in t.imports}
    sharding = bool(calls.named(_FSDP) or any("fsdp" in i for t in trees for i in t.imports))
    if sharding:
        for dotted in _OF_SHARDED:
            for call in calls.named(dotted):
                yield call, dotted.rpartition(".")[2]
    if not sharding and not imported & {
        "accelerate",
        "lightning",
        "lightning_fabric",
        "pytorch_lightning",
        "deepspeed",
    }:
        return
    for tree in trees:
        for call in tree.calls:
            func = call.func
            if (
                isinstance(func, ast.Attribute)
                and func.attr in wanted
                and _made_by(values, names, func, imported)
            ):
                yield call, func.attr
            elif sharding:
                name = _of_sharded(call, modules)
                if name:
                    yield call, name


def _made_by(values: Values, names: Names, func: ast.Attribute, imported: set[str]) -> bool:
    if not isinstance(func.value, VARIABLES):
        return False
    for origin in values.origins(func.value):
        maker = names.qualified(origin.func) or "" if isinstance(origin, ast.Call) else ""
        if not isinstance(origin, ast.Call):
            maker = _CALLED_AFTER.get(name_of(func.value), "")
            maker = maker if maker.split(".")[0] in imported else ""
        for makers, methods in _METHODS.items():
            if maker in makers and func.attr in methods:
                return not _own_group(values, origin)
    return False


def _own_group(values: Values, made: ast.AST) -> bool:
    """Whether an object is told of a process group: which ranks meet in it is the script's own business."""
    given = [k.value for k in made.keywords] if isinstance(made, ast.Call) else []
    parts = (o for g in given for o in values.origins(g) if isinstance(o, ast.Call))
    return any(k.arg == "process_group" for part in parts for k in part.keywords)


def _of_sharded(call: ast.Call, modules: Networks) -> str:
    """The forward pass of a sharded model, or one of its methods that gathers parameters."""
    network = modules.called(call)
    if network is not None and modules.sharded(network):
        return "FSDP forward"
    func = call.func
    if (
        isinstance(func, ast.Attribute)
        and func.attr in _METHODS_OF_SHARDED
        and isinstance(func.value, VARIABLES)
    ):
        by_class = modules.sharded_by_class(func.value)
        if by_class or (func.attr in ("generate", "forward") and modules.sharded(func.value)):
            return f"FSDP {func.attr}"
    return ""
