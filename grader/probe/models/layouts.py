"""How ranks are laid out: the dimensions of meshes, what was given which of them, and over whom tensors are split.

Told once each, so that whoever compares ranks knows which of them hold copies and which hold parts of one model. Reads
meshes and groups as they are; adds no collective and makes no group.
"""

from __future__ import annotations

import sys
from typing import Any, TypeAlias

from grader.probe.hooks import code_locations
from grader.probe.hooks.imports import once_imported
from grader.probe.hooks.patches import guarded, outermost, replace
from grader.probe.models.fingerprints import is_sharded
from grader.probe.trace import events
from grader.probe.trace.writer import writer

Line: TypeAlias = tuple[str, list[int]]
"""A mesh dimension's name ("" where it has none), and the ranks along it that this one is among."""

_MAX_LINES = 32

_names: dict[tuple[int, ...], str] = {}
_told: set[tuple[Any, ...]] = set()


def members(group: Any) -> list[int] | None:
    """Ranks of a process group, or of all of them for None; None where it can't be told."""
    import torch.distributed as dist

    try:
        return [int(rank) for rank in dist.get_process_group_ranks(group)]
    except (RuntimeError, ValueError, KeyError, TypeError):
        return None


def lines(mesh: Any) -> list[Line]:
    """The dimensions of a mesh, as this rank sees them; empty on a rank outside of it."""
    here = mesh.get_coordinate()
    names = mesh.mesh_dim_names or ()
    found: list[Line] = []
    for number in range(mesh.ndim if here is not None else 0):
        along: list[Any] = list(here)
        along[number] = slice(None)
        name = names[number] if number < len(names) else ""
        found.append((str(name), [int(rank) for rank in mesh.mesh[tuple(along)].tolist()]))
    return found


def _named(ranks: list[int]) -> Line:
    return _names.get(tuple(ranks), ""), ranks


def _once(*what: Any) -> bool:
    """Whether this is new, and worth an event."""
    if what in _told or len(_told) >= _MAX_LINES:
        return False
    _told.add(what)
    return True


def _mesh_made(_result: None, _started_s: float, mesh: Any, *_args: Any, **_kwargs: Any) -> None:
    new = [(name, ranks) for name, ranks in lines(mesh) if _once("mesh", name, tuple(ranks))]
    for name, ranks in new:
        if len(ranks) > 1:  # every dimension of size 1 has the same single rank
            _names.setdefault(tuple(ranks), name)
    if new:
        writer.write(events.MESH, dims=new, site=code_locations.here())


def _given(kind: str, dims: list[Line], stage: int | None = None) -> None:
    if dims and _once(kind, stage, *((name, tuple(ranks)) for name, ranks in dims)):
        writer.write(events.PARALLEL, kind=kind, dims=dims, stage=stage, site=code_locations.here())


def _tensor_parallel(_result: Any, _started_s: float, *args: Any, **kwargs: Any) -> None:
    mesh = kwargs.get("device_mesh", args[1] if len(args) > 1 else None)
    plan = kwargs.get("parallelize_plan", args[2] if len(args) > 2 else None)
    styles = plan.values() if isinstance(plan, dict) else (plan,)
    experts = any("Expert" in type(style).__name__ for style in styles)
    if mesh is not None:
        _given("expert" if experts else "tensor", lines(mesh))


def _stage_made(_result: None, _started_s: float, stage: Any, *_args: Any, **_kwargs: Any) -> None:
    ranks = members(stage.group)
    if ranks:
        _given("pipeline", [_named(ranks)], int(stage.stage_index))


def _context_parallel(_result: Any, _started_s: float, *args: Any, **kwargs: Any) -> None:
    mesh = kwargs.get("mesh", args[0] if args else None)
    if mesh is not None:
        _given("context", lines(mesh))


def of_wrapper(wrapper: Any, mesh: Any = None) -> dict[str, list[int] | None]:
    """Ranks that a wrapper's group or mesh names: `replicas` average among themselves, `parts` share one copy."""
    replicas: list[int] | None = None
    parts: list[int] | None = None
    if mesh is not None:  # `fully_shard` over one dimension, or over copies and shards
        *copies, shards = lines(mesh) or [("", [])]
        parts = shards[1] or None
        replicas = copies[0][1] if len(copies) == 1 else None
    else:
        group = getattr(wrapper, "process_group", None)
        if group is not None:
            if getattr(getattr(wrapper, "sharding_strategy", None), "name", "NO_SHARD") == "NO_SHARD":
                replicas = members(group)
            else:
                parts = members(group)
                across = getattr(wrapper, "_inter_node_pg", None)
                replicas = members(across) if across is not None else None
    return {"replicas": replicas, "parts": parts}


@guarded("placements")
def report_placements(optimizer: int, params: list[Any], names: list[str], chosen: list[Any]) -> None:
    """Tell over which ranks an optimizer's parameters are split, and how those are that stand for all."""
    splits: dict[tuple[str, tuple[int, ...]], Line] = {}
    seen: set[tuple[int, tuple[bool, ...]]] = set()
    for param in params:
        if is_sharded(param):
            cut = _cut(param)
            if (id(param.device_mesh), cut) not in seen:
                seen.add((id(param.device_mesh), cut))
                splits |= {(name, tuple(ranks)): (name, ranks) for name, ranks in _split(param)}
    if not splits:
        return
    order = list(splits)
    of = [
        [order.index((name, tuple(ranks))) for name, ranks in _split(param)] if is_sharded(param) else []
        for param in chosen
    ]
    writer.write(events.PLACED, optimizer=optimizer, splits=list(splits.values()), names=names, of=of)


def _cut(param: Any) -> tuple[bool, ...]:
    return tuple(not (one.is_replicate() or one.is_partial()) for one in param.placements)


def _split(param: Any) -> list[Line]:
    return [line for line, cut in zip(lines(param.device_mesh), _cut(param), strict=True) if cut]


def _hook_meshes() -> None:
    mesh = getattr(sys.modules.get("torch.distributed.device_mesh"), "DeviceMesh", None)
    replace([mesh], "__init__", outermost("mesh", _mesh_made))


def _hook_tensor_parallel() -> None:
    owners = ("torch.distributed.tensor.parallel", "torch.distributed.tensor.parallel.api")
    replace(
        [sys.modules.get(name) for name in owners],
        "parallelize_module",
        outermost("parallelize_module", _tensor_parallel),
    )


def _hook_pipelines() -> None:
    stage = getattr(sys.modules.get("torch.distributed.pipelining.stage"), "_PipelineStageBase", None)
    replace([stage], "__init__", outermost("stage", _stage_made))


def _hook_context_parallel() -> None:
    owners = ("torch.distributed.tensor.experimental", "torch.distributed.tensor.experimental._attention")
    replace(
        [sys.modules.get(name) for name in owners],
        "context_parallel",
        outermost("context_parallel", _context_parallel),
    )


def install() -> None:
    """Hook what makes meshes, and what is given them, now or when its module is imported."""
    for name, hook in (
        ("torch.distributed.device_mesh", _hook_meshes),
        ("torch.distributed.tensor.parallel", _hook_tensor_parallel),
        ("torch.distributed.pipelining.stage", _hook_pipelines),
        ("torch.distributed.tensor.experimental", _hook_context_parallel),
    ):
        once_imported(name, hook)
