"""Calls of libraries that every rank has to make together: sharded models, distributed checkpoints, frameworks.

Whoever calls one of these on rank 0 alone waits for the others as in a bare `barrier`. Calls of these libraries that
one rank may make alone (`accelerator.save`, `fabric.print`) are not among them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from grader.checks.source.calls.sites import Calls
from grader.checks.source.libraries.framework_words import ALL, LIGHTNING, OWNERS
from grader.checks.source.libraries.loop_owners import LoopOwners
from grader.checks.source.models.networks import Networks
from grader.checks.source.syntax.nodes import VARIABLES, name_of
from grader.checks.source.syntax.tree import Tree
from grader.checks.source.values.sources import Values

_FSDP = "torch.distributed.fsdp.FullyShardedDataParallel"
# Each of these meets the other ranks, whatever the model is wrapped in.
_FUNCTIONS = (
    "torch.distributed.checkpoint.save", "torch.distributed.checkpoint.load",
    "torch.distributed.checkpoint.async_save", "torch.distributed.checkpoint.save_state_dict",
    "torch.distributed.checkpoint.load_state_dict", f"{_FSDP}.summon_full_params", f"{_FSDP}.optim_state_dict",
    f"{_FSDP}.full_optim_state_dict", f"{_FSDP}.scatter_full_optim_state_dict", "horovod.torch.allreduce",
    "horovod.torch.broadcast_parameters", "horovod.torch.broadcast_optimizer_state", "horovod.torch.allgather",
    *(
        f"accelerate.utils.{name}"
        for name in (
            "broadcast", "broadcast_object_list", "gather", "gather_object", "pad_across_processes", "reduce",
            "wait_for_everyone",
        )
    ),
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
# Object's makers, what they are usually called, and the methods.
_METHODS: tuple[tuple[tuple[str, ...], str, frozenset[str]], ...] = (
    *((words.makers, words.called, words.meets | words.sharded) for words in (*ALL, *OWNERS)),
    (("accelerate.PartialState", "accelerate.state.PartialState"), "state", frozenset({"wait_for_everyone"})),
    (
        ("deepspeed.initialize", "deepspeed.init_inference"),
        "model_engine",
        frozenset({"save_checkpoint", "load_checkpoint"}),
    ),
)
_PACKAGES = {maker.split(".")[0] for makers, _, _ in _METHODS for maker in makers}
_OF_A_STRATEGY = {"barrier", "broadcast", "reduce", "all_gather", "reduce_boolean_decision"}


def library_calls(
    trees: tuple[Tree, ...],
    calls: Calls,
    values: Values,
    modules: Networks,
    owners: LoopOwners,
) -> Iterable[tuple[ast.Call, str]]:
    """Such calls with the name that their reader knows them by."""
    for dotted in _FUNCTIONS:
        for call in calls.named(dotted):
            yield call, dotted.rpartition(".")[2]
    wanted = {m for _, _, methods in _METHODS for m in methods}
    imported = {i.split(".")[0] for t in trees for i in t.imports}
    sharding = bool(calls.named(_FSDP) or any("fsdp" in i for t in trees for i in t.imports))
    if sharding:
        for dotted in _OF_SHARDED:
            for call in calls.named(dotted):
                yield call, dotted.rpartition(".")[2]
    if not sharding and not imported & _PACKAGES:
        return
    for tree in trees:
        for call in tree.calls:
            func = call.func
            known = isinstance(func, ast.Attribute) and (
                (func.attr in wanted and _made_by(values, owners, func, imported))
                or _of_lightning(calls, values, owners, tree, call)
            )
            if known:
                yield call, name_of(func)
            elif sharding:
                name = _of_sharded(call, modules)
                if name:
                    yield call, name


def _made_by(values: Values, owners: LoopOwners, func: ast.Attribute, imported: set[str]) -> bool:
    if not isinstance(func.value, (*VARIABLES, ast.Call)):
        return False
    for origin in values.origins(func.value):
        made = owners.maker(origin) if isinstance(origin, ast.Call) else set()
        for makers, called, methods in _METHODS:
            known = bool(made & set(makers))
            if not isinstance(origin, ast.Call):
                # Of a loop's owner not even the usual name is left where no such class is imported.
                known = name_of(func.value) == called and any(m.split(".")[0] in imported for m in makers)
                known = known and (called != "trainer" or any(w.makers == makers for w in owners.imported))
            if known and func.attr in methods:
                return not _own_group(values, origin)
    return False


def _of_lightning(calls: Calls, values: Values, owners: LoopOwners, tree: Tree, call: ast.Call) -> bool:
    """`self.all_gather(…)` and `self.log(…, sync_dist=True)` of a module, `trainer.strategy.barrier()`."""
    func = call.func
    if not isinstance(func, ast.Attribute) or not isinstance(func.value, VARIABLES):
        return False
    if func.attr in _OF_A_STRATEGY and name_of(func.value) == "strategy":
        above = func.value.value if isinstance(func.value, ast.Attribute) else None
        return above is not None and name_of(above) == "trainer" and LIGHTNING in owners.imported
    told = func.attr in ("log", "log_dict") and values.constant(calls.argument(call, "sync_dist")) is True
    of_self = name_of(func.value) in ("self", "pl_module") and (told or func.attr == "all_gather")
    if not of_self or LIGHTNING not in owners.imported:
        return False
    return name_of(func.value) == "pl_module" or owners.is_lightning_module(tree.enclosing_class(call))


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
