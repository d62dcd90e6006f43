"""What older scripts call and today's torch refuses: names, modules and arguments, with what to write instead.

Versions are those of torch's release notes; only what is gone for certain is listed, deprecations that still work
are not.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass

from grader.checks.source.calls.arguments import keyword_value
from grader.checks.source.script import Script
from grader.checks.source.syntax.nodes import UNKNOWN, steps_up
from grader.checks.source.training_loops import DATA_LOADER

_DIST = "torch.distributed"
GONE = {
    f"{_DIST}.deprecated": "`torch.distributed`",
    "torch.nn.parallel.deprecated": "`torch.nn.parallel.DistributedDataParallel`",
    "torch._six": "`collections.abc` and plain Python types",
    f"{_DIST}.all_reduce_multigpu": "`dist.all_reduce` with one device per process",
    f"{_DIST}.broadcast_multigpu": "`dist.broadcast` with one device per process",
    f"{_DIST}.reduce_multigpu": "`dist.reduce` with one device per process",
    f"{_DIST}.all_gather_multigpu": "`dist.all_gather` with one device per process",
    f"{_DIST}.reduce_scatter_multigpu": "`dist.reduce_scatter` with one device per process",
    f"{_DIST}.pipeline.sync": "`torch.distributed.pipelining`",
    f"{_DIST}.fsdp.wrap.default_auto_wrap_policy": "`size_based_auto_wrap_policy`",
    f"{_DIST}.fsdp.fully_sharded_data_parallel.default_auto_wrap_policy": "`size_based_auto_wrap_policy`",
    "torch.utils.data.dataloader.DataLoaderIter": "`iter(loader)`",
}
"""Full names that are gone, with what takes their place."""
_LAST_PARTS = {name.rpartition(".")[2] for name in GONE}
_KEYWORDS = {
    (f"{_DIST}.fsdp.FullyShardedDataParallel", "fsdp_auto_wrap_policy"): "`auto_wrap_policy`",
    (f"{_DIST}.fsdp.FullyShardedDataParallel", "min_num_params"): "`auto_wrap_policy`",
    ("torch.nn.parallel.DistributedDataParallel", "delay_allreduce"): "nothing: it was apex's",
    ("torch.nn.parallel.DistributedDataParallel", "message_size"): "`bucket_cap_mb`",
}
_GROUPED = {
    f"{_DIST}.{n}": "group"
    for n in (
        "all_reduce", "broadcast", "reduce", "all_gather", "gather", "scatter", "barrier", "get_rank",
        "get_world_size",
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Removed:
    """One use. Attributes: node: where; name: what is gone; instead: what takes its place, or says why it fails."""

    node: ast.AST
    name: str
    instead: str


def removed(script: Script) -> Iterable[Removed]:
    """All uses of what is gone that run whatever version is installed."""
    for tree in script.trees:
        for node in tree.importing:
            if any(_imported(node)) and not _optional(script, node):
                yield from _imported(node)
        likely = (found for last, found in tree.attribute_loads.items() if last in _LAST_PARTS)
        for attribute in (a for found in likely for a in found):
            name = script.names.qualified(attribute)
            if name in GONE and not _optional(script, attribute):
                yield Removed(attribute, name, GONE[name])
        for attribute in tree.attribute_loads.get("next", ()):
            inner = isinstance(tree.parent.get(attribute), ast.Attribute)
            if script.names.qualified(attribute) is None and not inner and _is_iterator(script, attribute):
                yield Removed(attribute, "the iterators' `.next()`", "`next(iterator)`")
    for call in script.calls(*_GROUPED, *dict.fromkeys(name for name, _ in _KEYWORDS)):
        yield from _arguments(script, call)


def _imported(node: ast.Import | ast.ImportFrom) -> Iterable[Removed]:
    if isinstance(node, ast.ImportFrom) and node.level:
        return
    base = f"{node.module}." if isinstance(node, ast.ImportFrom) and node.module else ""
    for alias in node.names:
        dotted = f"{base}{alias.name}"
        gone = next((g for g in GONE if dotted == g or dotted.startswith(g + ".")), None)
        if gone is not None:
            yield Removed(node, gone, GONE[gone])


def _arguments(script: Script, call: ast.Call) -> Iterable[Removed]:
    name = script.names.qualified(call.func)
    for keyword in call.keywords:
        instead = _KEYWORDS.get((name or "", keyword.arg or ""))
        if instead is not None:
            yield Removed(call, f"the argument `{keyword.arg}`", instead)
    if name in _GROUPED:
        group = keyword_value(call, "group")
        if group is not None and isinstance(group, ast.Constant) and isinstance(group.value, int):
            yield Removed(call, "`group=0` for all ranks", "nothing: the group of all ranks is the default")
    if name == f"{_DIST}.barrier":
        ids = keyword_value(call, "device_ids")
        if ids is not None and _is_number(script, ids):
            yield Removed(call, "`device_ids` as a number", "a list, `device_ids=[local_rank]`")


def _is_number(script: Script, node: ast.expr) -> bool:
    if isinstance(node, ast.List | ast.Tuple | ast.ListComp) or node is UNKNOWN:
        return False
    origins = script.values.origins(node)
    if any(isinstance(o, ast.List | ast.Tuple) for o in origins):
        return False
    return isinstance(script.values.constant(node), int) or script.ranks.rank(node) > 1


def _is_iterator(script: Script, attribute: ast.Attribute) -> bool:
    """Whether an object is `iter(loader)`."""
    if not isinstance(script.names.tree(attribute).parent.get(attribute), ast.Call):
        return False
    for origin in script.values.origins(attribute.value):
        if isinstance(origin, ast.Call) and script.names.qualified(origin.func) == "iter" and origin.args:
            made = script.values.origins(origin.args[0])
            if any(isinstance(m, ast.Call) and script.names.qualified(m.func) == DATA_LOADER for m in made):
                return True
    return False


def _optional(script: Script, node: ast.AST) -> bool:
    """Whether a script is ready for its absence: in a `try`, under a test of the version or `hasattr`."""
    tree = script.names.tree(node)
    for child, above in steps_up(tree.parent, node):
        if isinstance(above, ast.Try | ast.ExceptHandler):
            return True
        if isinstance(above, ast.If) and child is not above.test:
            text = ast.unparse(above.test)
            if re.search(r"version|hasattr|TORCH_|available", text, re.IGNORECASE):
                return True
    return False
