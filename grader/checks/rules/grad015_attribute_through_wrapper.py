"""An attribute of the model is read from the wrapper.

## What it finds
`model.head`, `model.generate(…)` and the like on a model wrapped in DDP, where the attribute belongs to the network
inside.

## Why it matters
`DistributedDataParallel` passes calls on, but not attributes: the script stops with "'DistributedDataParallel' object
has no attribute". What it holds is in `model.module`.

## Example
```python
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(x)


model = DistributedDataParallel(Net())
print(model.head.weight.norm())
```

## Use instead
```python
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(x)


model = DistributedDataParallel(Net())
print(model.module.head.weight.norm())
```

## How it is seen
In the source, by an attribute that the wrapper lacks and nobody sets on it, read from a name that is the wrapper for
sure, or what `accelerator.prepare` gave back. In the run, by the exception.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grader.checks.phrases import at, place, ranks
from grader.checks.rule import Hit, Observation, flagged, not_observable, verified
from grader.checks.source.libraries.framework_words import ACCELERATE
from grader.checks.source.script import Script
from grader.checks.source.syntax.edits import Edits
from grader.checks.source.syntax.nodes import ancestors, name_of
from grader.model.finding import Severity
from grader.model.fix import Fix

if TYPE_CHECKING:
    from grader.checks.evidence import Evidence

SEVERITY = Severity.ERROR

_MESSAGE = re.compile(r"'DistributedDataParallel' object has no attribute '(\w+)'")
# What the wrapper has itself: of torch.nn.Module and of DistributedDataParallel (torch 2.x).
_OWN = {
    "add_module", "apply", "batched_grad_copy", "bfloat16", "broadcast_bucket_size", "broadcast_buffers",
    "bucket_bytes_cap", "bucket_bytes_cap_default", "bucket_bytes_cap_list", "buffers", "call_super_init", "children",
    "compile", "cpu", "cuda", "ddp_uneven_inputs_config", "device", "device_ids", "device_type", "dim", "double",
    "dump_patches", "eval", "extra_repr", "finalize_backward", "find_unused_parameters", "float", "forward",
    "forward_sync_buffers", "gather", "get_buffer", "get_ddp_logging_data", "get_extra_state", "get_parameter",
    "get_submodule", "gradient_as_bucket_view", "half", "ipu", "is_multi_device_module", "join", "join_device",
    "join_hook", "join_process_group", "lazy_bucket_allocation", "load_state_dict", "logger", "mixed_precision",
    "module", "modules", "modules_buffers", "modules_params", "mtia", "named_buffers", "named_children",
    "named_module_buffers", "named_modules", "named_parameters", "no_sync", "output_device", "parameters",
    "parameters_to_ignore", "process_group", "reducer", "register_backward_hook", "register_buffer",
    "register_comm_hook", "register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook",
    "register_full_backward_pre_hook", "register_load_state_dict_post_hook", "register_load_state_dict_pre_hook",
    "register_module", "register_parameter", "register_state_dict_post_hook", "register_state_dict_pre_hook",
    "require_backward_grad_sync", "require_forward_param_sync", "require_manual_backward_finalization",
    "requires_grad_", "scatter", "set_extra_state", "set_submodule", "share_memory", "should_finalize_after_backward",
    "skip_all_reduce_unused_params", "state_dict", "static_graph", "T_destination", "to", "to_empty", "to_kwargs",
    "train", "training", "type", "use_side_stream_for_tensor_copies", "will_sync_module_buffers", "xpu", "zero_grad",
}  # fmt: skip
_OF_TRANSFORMERS = {
    "config",
    "generate",
    "get_input_embeddings",
    "resize_token_embeddings",
    "save_pretrained",
}
"""What every model of transformers has."""
_OTHER_WRAPPERS = {"fsdp_plugin", "deepspeed_plugin", "megatron_lm_plugin", "parallelism_config"}
"""Arguments of an Accelerator that may have it wrap in something else than DistributedDataParallel."""
_HINT = "Go through the wrapper's inside: `model.module.{name}`; only calls of the model itself belong to the wrapper."


def check_source(script: Script) -> Iterable[Hit]:
    """Flag attributes of the network that are read from its wrapper."""
    if script.frameworks.words is ACCELERATE:
        yield from _of_accelerate(script)
    if script.training.framework or not script.training.wraps:
        return
    for tree in script.trees:
        for name, loads in tree.attribute_loads.items():
            if name in _OWN or name.startswith("_"):
                continue
            for load in loads:
                wrap = _wrapper(script, load.value)
                if wrap is not None and not _set_on(script, wrap, name) and not _tested(script, load):
                    yield Hit(
                        message=f"{script.at(load)} reads `{name}` from the wrapper made in {script.at(wrap)}. "
                        "`DistributedDataParallel` passes calls on, not attributes, so the script stops here with an "
                        "AttributeError.",
                        hint=_HINT.format(name=name),
                        where=(script.location(load),),
                        fix=_fix(script, load),
                    )


def _of_accelerate(script: Script) -> Iterable[Hit]:
    """The same of what `accelerator.prepare` gave back, which is the wrapper as soon as there are several processes."""
    if any(
        k.arg is None or k.arg in _OTHER_WRAPPERS for made in script.frameworks.objects for k in made.keywords
    ):
        return
    told: set[str] = set()
    for tree in script.trees:
        for name, loads in tree.attribute_loads.items():
            if name in _OWN or name.startswith("__"):
                continue
            for load in loads:
                if name in told or not _belongs_to_network(script, load.value, name) or _tested(script, load):
                    continue
                wrap = script.frameworks.holds_model(load.value)
                if wrap is not None:
                    told.add(name)
                    yield Hit(
                        message=f"{script.at(load)} reads `{name}` from what {script.at(wrap)} gave back. With several "
                        "processes that is the DistributedDataParallel wrapper, which passes calls on, not attributes: "
                        "the script stops here with an AttributeError.",
                        hint=f"Take the network out first: `accelerator.unwrap_model(model).{name}`.",
                        where=(script.location(load),),
                        severity=Severity.WARNING,
                    )


def _belongs_to_network(script: Script, value: ast.expr, name: str) -> bool:
    """Whether all that a name may be are networks that have such an attribute: of classes here, or of transformers."""
    if not isinstance(value, ast.Name | ast.Attribute):
        return False
    origins = script.values.origins(value)
    made = [o for o in origins if isinstance(o, ast.Call)]
    if not made or len(made) < len(origins):
        return False
    return all(
        (name in _OF_TRANSFORMERS and _from_transformers(script, m))
        or ((owner := script.graph.built_class(m)) is not None and _has(script, owner, name))
        for m in made
    )


def _from_transformers(script: Script, made: ast.Call) -> bool:
    name = script.names.qualified(made.func) or ""
    return name.startswith("transformers.") and name.endswith((".from_pretrained", ".from_config"))


def _fix(script: Script, load: ast.Attribute) -> Fix | None:
    edits = Edits(script)
    edits.append(load.value, ".module")
    return edits.fix("Reads the attribute of the network inside the wrapper.")


def _wrapper(script: Script, value: ast.expr) -> ast.Call | None:
    """The wrap, where a name can be nothing else."""
    if not isinstance(value, ast.Name | ast.Attribute):
        return None
    origins = script.values.origins(value)
    wraps = [o for o in origins if isinstance(o, ast.Call) and o in script.training.wraps]
    return wraps[0] if wraps and len(wraps) == len(origins) else None


def _set_on(script: Script, wrap: ast.Call, name: str) -> bool:
    """Whether somebody sets such an attribute on the wrapper, or on something that may be it: `model.epoch = 3`."""
    if any(text.value == name for tree in script.trees for text in tree.texts):
        return True  # `setattr(model, "epoch", 3)`
    targets = (
        target.value
        for tree in script.trees
        for definition in tree.attributes.get(name, ())
        for target in getattr(definition.node, "targets", [getattr(definition.node, "target", None)])
        if isinstance(target, ast.Attribute) and target.attr == name
    )
    return any(wrap in script.values.origins(owner) for owner in targets)


def _has(script: Script, owner: ast.ClassDef, name: str) -> bool:
    family = [owner, *script.graph.bases(owner)]
    for tree in script.trees:
        for definition in tree.attributes.get(name, ()):
            if definition.name == f"self.{name}" and tree.enclosing_class(definition.node) in family:
                return True
    return any(script.graph.method(o, name) is not None for o in family)


def _tested(script: Script, load: ast.Attribute) -> bool:
    """Under `try`, `hasattr` or `isinstance` somebody has thought of it."""
    tree = script.names.tree(load)
    for above in ancestors(tree.parent, load, tree.function(load)):
        if isinstance(above, ast.Try):
            return True
        if isinstance(above, ast.If | ast.IfExp):
            calls = tree.calls_within(above.test)
            if any(name_of(c) in ("hasattr", "isinstance", "getattr", "type") for c in calls):
                return True
    return False


def check_run(evidence: Evidence) -> Observation:
    """Flag scripts that stopped for it."""
    from grader.checks.run.endings.exception_places import exception_places

    wrapped = [r for r in evidence.trace.ranks if any(w.kind == "ddp" for w in r.wraps)]
    if not wrapped:
        return not_observable("No model was wrapped in DDP.")
    failed = [
        (r, e, m)
        for r in wrapped
        for e in r.events("exception")
        if e.fields.get("type") == "AttributeError"
        and (m := _MESSAGE.search(str(e.fields.get("message", ""))))
    ]
    if not failed:
        if any(r.events("exception") or not r.ended for r in wrapped):
            return not_observable("The script did not run to its end.")
        return verified("Nothing was read from the wrapper that only the network inside has.")
    _, event, match = failed[0]
    site = next(iter(exception_places(event)), event.site)
    return flagged(
        Hit(
            message=f"{ranks(r.rank for r, _, _ in failed)} stopped at {at(site, 'a line of the script')}: "
            f"`DistributedDataParallel` has no `{match[1]}`, since it passes calls on to the network, not attributes.",
            hint=_HINT.format(name=match[1]),
            where=place(site),
            ranks=tuple(r.rank for r, _, _ in failed),
            details={"attribute": match[1]},
        )
    )
