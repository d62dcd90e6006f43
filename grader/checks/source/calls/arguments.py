"""What a library call was given: by keyword, by position, through `**options`.

Knows the positional parameters that rules ask for and nothing else of a library. Where an argument may hide, the answer
is `UNKNOWN` and a rule stays silent.
"""

from __future__ import annotations

import ast

from grader.checks.source.libraries.names import Names
from grader.checks.source.syntax.nodes import UNKNOWN
from grader.checks.source.values.reaching_assignments import Scopes

# Positional parameters, from the reference pages of torch 2.x; only as far as rules ask for them.
_GROUP_THIRD = ("tensor", "op", "group")
_FUNCTIONAL = ("input", "p", "training", "inplace")
_DROPOUT = ("input", "p", "train")
SIGNATURES: dict[str, tuple[str, ...]] = {
    "torch.utils.data.DataLoader": (
        "dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "collate_fn", "pin_memory",
        "drop_last",
    ),
    "torch.utils.data.DistributedSampler": ("dataset", "num_replicas", "rank", "shuffle", "seed", "drop_last"),
    "torch.utils.data.BatchSampler": ("sampler", "batch_size", "drop_last"),
    "torch.utils.data.Subset": ("dataset", "indices"),
    "torch.utils.data.random_split": ("dataset", "lengths", "generator"),
    "torch.optim.SGD": ("params", "lr"),
    "torch.optim.Adam": ("params", "lr"),
    "torch.optim.AdamW": ("params", "lr"),
    "torch.optim.RMSprop": ("params", "lr"),
    "torch.optim.lr_scheduler.OneCycleLR": ("optimizer", "max_lr", "total_steps", "epochs", "steps_per_epoch"),
    "torch.optim.lr_scheduler.CosineAnnealingLR": ("optimizer", "T_max"),
    "torch.optim.lr_scheduler.ReduceLROnPlateau": ("optimizer", "mode"),
    "torch.optim.lr_scheduler.PolynomialLR": ("optimizer", "total_iters"),
    "torch.nn.parallel.DistributedDataParallel": ("module", "device_ids", "output_device", "dim"),
    "torch.nn.parallel.DataParallel": ("module", "device_ids"),
    "torch.nn.functional.dropout": _FUNCTIONAL,
    "torch.nn.functional.dropout1d": _FUNCTIONAL,
    "torch.nn.functional.dropout2d": _FUNCTIONAL,
    "torch.nn.functional.dropout3d": _FUNCTIONAL,
    "torch.nn.functional.alpha_dropout": _FUNCTIONAL,
    "torch.nn.functional.feature_alpha_dropout": _FUNCTIONAL,
    "torch.dropout": _DROPOUT,
    "torch.feature_dropout": _DROPOUT,
    "torch.alpha_dropout": _DROPOUT,
    "torch.feature_alpha_dropout": _DROPOUT,
    "torch.nn.functional.scaled_dot_product_attention": (
        "query", "key", "value", "attn_mask", "dropout_p", "is_causal",
    ),
    "torch.save": ("obj", "f"),
    "torch.jit.save": ("m", "f"),
    "safetensors.torch.save_file": ("tensors", "filename"),
    "safetensors.torch.save_model": ("model", "filename"),
    "torch.distributed.init_process_group": (
        "backend", "init_method", "timeout", "world_size", "rank", "store", "group_name",
    ),
    "torch.load": ("f", "map_location"),
    "torch.distributed.all_reduce": _GROUP_THIRD,
    "torch.distributed.broadcast": ("tensor", "src", "group"),
    "torch.distributed.reduce": ("tensor", "dst", "op", "group"),
    "torch.distributed.all_gather": ("tensor_list", "tensor", "group"),
    "torch.distributed.all_gather_into_tensor": ("output_tensor", "input_tensor", "group"),
    "torch.distributed.all_gather_object": ("object_list", "obj", "group"),
    "torch.distributed.gather": ("tensor", "gather_list", "dst", "group"),
    "torch.distributed.gather_object": ("obj", "object_gather_list", "dst", "group"),
    "torch.distributed.scatter": ("tensor", "scatter_list", "src", "group"),
    "torch.distributed.scatter_object_list": ("output", "input", "src", "group"),
    "torch.distributed.broadcast_object_list": ("object_list", "src", "group"),
    "torch.distributed.reduce_scatter": ("output", "input_list", "op", "group"),
    "torch.distributed.reduce_scatter_tensor": ("output", "input", "op", "group"),
    "torch.distributed.all_to_all": ("output", "input", "group"),
    "torch.distributed.all_to_all_single": ("output", "input", "out_sizes", "in_sizes", "group"),
    "torch.distributed.barrier": ("group",),
    "torch.distributed.monitored_barrier": ("group",),
    "torch.multiprocessing.spawn": ("fn", "args", "nprocs"),
    "torch.multiprocessing.start_processes": ("fn", "args", "nprocs"),
}  # fmt: skip


def arguments_of(call: ast.Call) -> list[ast.expr]:
    """What a call is given, by place and by keyword."""
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def keyword_value(call: ast.Call, name: str) -> ast.expr | None:
    """What a call is given by a keyword, None where it is not written out."""
    return next((k.value for k in call.keywords if k.arg == name), None)


def called_on(call: ast.Call) -> ast.expr | None:
    """What a method is called on, `model` of `model.eval()`; None where nothing stands before a dot."""
    return call.func.value if isinstance(call.func, ast.Attribute) else None


class Arguments:
    """Arguments of calls into libraries."""

    def __init__(self, names: Names, scopes: Scopes) -> None:
        self._names, self._scopes = names, scopes

    def of(self, call: ast.Call, name: str) -> ast.expr | None:
        """An argument of a library call by name: an expression, `UNKNOWN`, or None where it is not given."""
        hidden = False
        for keyword in call.keywords:
            if keyword.arg == name:
                return keyword.value
            if keyword.arg is None:
                found = self._from_options(keyword.value, name)
                if found is UNKNOWN:
                    hidden = True
                elif found is not None:
                    return found
        order = SIGNATURES.get(self._names.qualified(call.func) or "", ())
        if name in order:
            index = order.index(name)
            if any(isinstance(a, ast.Starred) for a in call.args[: index + 1]):
                return UNKNOWN
            if index < len(call.args):
                return call.args[index]
        return UNKNOWN if hidden else None

    def _from_options(self, options: ast.expr, name: str) -> ast.expr | None:
        """Looks into `**options`: dict displays and `dict(…)`, with `options.update(…)` and `options["x"] = …`."""
        if isinstance(options, ast.Dict):
            for key, value in zip(options.keys, options.values, strict=True):
                if key is None:
                    inner = self._from_options(value, name)
                    if inner is not None:
                        return inner
                elif not isinstance(key, ast.Constant):
                    return UNKNOWN
                elif key.value == name:
                    return value
            return None
        if (
            isinstance(options, ast.Call)
            and self._names.qualified(options.func) == "dict"
            and not options.args
        ):
            return next((k.value for k in options.keywords if k.arg == name), None)
        if isinstance(options, ast.IfExp):
            return self._from_options(options.body, name) or self._from_options(options.orelse, name)
        if not isinstance(options, ast.Name):
            return UNKNOWN
        stored = self._scopes.reaching(f"{options.id}[{name!r}]", options)
        if stored and stored[0].value is not None:
            return stored[0].value
        found: ast.expr | None = None
        definitions = self._scopes.reaching(options.id, options)
        sources = [
            d.value for d in definitions if d.kind == "assign" and not d.path and d.value is not options
        ]
        if not sources or len(sources) < len(definitions):
            return UNKNOWN
        for load in self._names.tree(options).loads.get(options.id, ()):
            above = self._names.tree(options).parent[load]
            if isinstance(above, ast.Attribute) and above.attr == "update":
                update = self._names.tree(options).parent[above]
                sources += [a for a in getattr(update, "args", ()) if a is not load]
        for source in sources:
            if source is not None and not (isinstance(source, ast.Name) and source.id == options.id):
                found = found or self._from_options(source, name)
        return found
