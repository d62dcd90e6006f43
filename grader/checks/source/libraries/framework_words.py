"""What frameworks call the things that DistributedDataParallel scripts write out: one table, and who speaks it.

`Accelerate` and `Fabric` leave the loop to the script and take over its parts: models, loaders, `backward`. Their words
are here, so that rules judge such loops as any other. Lightning's `Trainer` and the `Trainer` of transformers own the
loop; of them what a script does around it is judged, and what it writes for them to call (`loop_owners`).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from grader.checks.source.libraries.names import Names
from grader.checks.source.syntax.nodes import DISPLAYS, VARIABLES, name_of


@dataclass(frozen=True, slots=True)
class Words:
    """How one framework is spoken to, as its documentation has it.

    Attributes:
        name: what its readers call it. makers: classes whose object is spoken to; called: that object's usual name.
        package: beginnings of its imports.
        main: a test that holds on rank 0 alone, as an attribute of the object.
        meets: methods that every rank has to call; sharded: those that meet only where the model is in parts.
        instead: what DDP's advice writes, and what stands for it here after the object's name.

    The rest is empty where the framework owns the loop:
        prepares: methods that hand their arguments back, wrapped or divided, in the same order.
        loaders: those of them that divide a loader among the ranks; models: those that wrap a model.
        clip: what clips gradients after unscaling them; half: the argument, and its values, that scale the loss.
        joined: how values of the ranks are brought together, for advice.
        divides_again: a loader whose `DistributedSampler` has divided the data is divided once more.
    """

    name: str
    makers: tuple[str, ...]
    called: str
    package: tuple[str, ...]
    main: str
    meets: frozenset[str]
    instead: tuple[tuple[str, str], ...]
    sharded: frozenset[str] = frozenset()
    prepares: frozenset[str] = frozenset()
    loaders: frozenset[str] = frozenset()
    models: frozenset[str] = frozenset()
    clip: str = ""
    half: tuple[str, frozenset[object]] = ("", frozenset())
    joined: str = ""
    divides_again: bool = False


ACCELERATE = Words(
    name="Accelerate",
    makers=("accelerate.Accelerator", "accelerate.accelerator.Accelerator"),
    called="accelerator",
    package=("accelerate",),
    prepares=frozenset(
        {"prepare", "prepare_model", "prepare_data_loader", "prepare_optimizer", "prepare_scheduler"}
    ),
    loaders=frozenset({"prepare", "prepare_data_loader"}),
    models=frozenset({"prepare", "prepare_model"}),
    main="is_main_process",
    meets=frozenset(
        {
            "wait_for_everyone",
            "load_state",
            "gather",
            "gather_for_metrics",
            "reduce",
            "prepare",
            "prepare_model",
            "pad_across_processes",
            "main_process_first",
            "check_trigger",
        }
    ),
    sharded=frozenset({"save_state", "save_model"}),
    clip="clip_grad_norm_",
    half=("mixed_precision", frozenset({"fp16"})),
    divides_again=True,
    instead=(
        ("dist.get_rank() == 0", ".is_main_process"),
        ("local_rank == 0", ".is_local_main_process"),
        ("dist.barrier()", ".wait_for_everyone()"),
    ),
    joined="`accelerator.gather_for_metrics((predictions, labels))` in the loop",
)
FABRIC = Words(
    name="Fabric",
    makers=("lightning.Fabric", "lightning.fabric.Fabric", "lightning_fabric.Fabric"),
    called="fabric",
    package=("lightning", "lightning_fabric"),
    prepares=frozenset({"setup", "setup_module", "setup_optimizers", "setup_dataloaders"}),
    loaders=frozenset({"setup_dataloaders"}),
    models=frozenset({"setup", "setup_module"}),
    main="is_global_zero",
    meets=frozenset(
        {
            "save",
            "load",
            "barrier",
            "all_gather",
            "all_reduce",
            "broadcast",
            "setup",
            "setup_module",
            "clip_gradients",
            "rank_zero_first",
        }
    ),
    clip="clip_gradients",
    half=("precision", frozenset({"16-mixed", "16", 16})),
    divides_again=False,
    instead=(
        ("dist.get_rank() == 0", ".is_global_zero"),
        ("local_rank == 0", ".local_rank == 0"),
        ("dist.barrier()", ".barrier()"),
    ),
    joined='`fabric.all_reduce(counts, reduce_op="sum")` behind the loop',
)
TRAINER = Words(
    name="the Trainer of transformers",
    makers=(
        "transformers.Trainer", "transformers.Seq2SeqTrainer", "transformers.trainer.Trainer", "trl.SFTTrainer",
        "trl.DPOTrainer", "trl.GRPOTrainer", "trl.RewardTrainer",
    ),
    called="trainer",
    package=("transformers", "trl"),
    main="is_world_process_zero()",
    meets=frozenset({"train", "evaluate", "predict"}),
    sharded=frozenset({"save_model"}),
    instead=(
        ("dist.get_rank() == 0", ".is_world_process_zero()"),
        ("local_rank == 0", ".is_local_process_zero()"),
        ("dist.barrier()", ".accelerator.wait_for_everyone()"),
    ),
)  # fmt: skip
LIGHTNING = Words(
    name="Lightning's Trainer",
    makers=("lightning.Trainer", "lightning.pytorch.Trainer", "pytorch_lightning.Trainer"),
    called="trainer",
    package=("lightning", "pytorch_lightning"),
    main="is_global_zero",
    meets=frozenset({"fit", "validate", "test", "predict", "save_checkpoint"}),
    instead=(
        ("dist.get_rank() == 0", ".is_global_zero"),
        ("local_rank == 0", ".local_rank == 0"),
        ("dist.barrier()", ".strategy.barrier()"),
    ),
)
ALL = (ACCELERATE, FABRIC)
OWNERS = (TRAINER, LIGHTNING)
"""Those that own the training loop themselves."""
TRAINERS = tuple(maker for words in OWNERS for maker in words.makers)
_PREPARES = frozenset(method for words in ALL for method in words.prepares)
_PACKAGES = {
    "accelerate", "colossalai", "composer", "deepspeed", "fairscale", "horovod", "ignite", "lightning",
    "lightning_fabric", "mmengine", "pytorch_lightning", "ray",
}  # fmt: skip
# Parts of Accelerate that place big models and start no processes.
_BIG_MODELS = {
    "init_empty_weights", "init_on_device", "load_checkpoint_and_dispatch", "load_checkpoint_in_model",
    "dispatch_model", "infer_auto_device_map", "cpu_offload", "disk_offload", "big_modeling",
}  # fmt: skip


def is_framework(imported: str) -> bool:
    """Whether an import is of a framework, and not of a part of one that has nothing to do with several processes."""
    package, _, rest = imported.partition(".")
    part = rest.partition(".")[0]
    alone = (package == "accelerate" and part in _BIG_MODELS) or (package, part) == ("deepspeed", "profiling")
    return (package in _PACKAGES and not alone) or imported in TRAINERS


def speaker(names: Names, node: ast.AST) -> Words | None:
    """The framework whose object an expression is: built as one, or called as its object usually is."""
    if not isinstance(node, VARIABLES):
        return None
    made = [d.value for d in names.lookup(node.id, node)] if isinstance(node, ast.Name) else []
    for words in ALL:
        built = [m for m in made if isinstance(m, ast.Call)]
        if any(names.qualified(b.func) in words.makers for b in built):
            return words
        imported = any(i.split(".")[0] in words.package for t in names.trees for i in t.imports)
        if imported and not built and name_of(node).lower().lstrip("_") == words.called:
            return words
    return None


def handed_on(names: Names, call: ast.AST) -> Sequence[ast.expr]:
    """What a call of a framework takes and gives back in the same order: `accelerator.prepare(model, loader)`."""
    func = call.func if isinstance(call, ast.Call) else None
    if not isinstance(call, ast.Call) or not isinstance(func, ast.Attribute) or func.attr not in _PREPARES:
        return ()
    words = speaker(names, func.value)
    if words is None or func.attr not in words.prepares or any(isinstance(a, ast.Starred) for a in call.args):
        return ()
    return call.args


def unpacked(names: Names, origin: ast.AST, index: int) -> ast.AST:
    """One of several values that are unpacked, where the text shows which; else all of them."""
    parts = origin.elts if isinstance(origin, DISPLAYS) else handed_on(names, origin)
    return parts[index] if 0 <= index < len(parts) else origin
