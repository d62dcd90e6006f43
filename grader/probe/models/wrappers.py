"""Modules wrapped for data parallelism, by whichever library.

Accelerate and Fabric build DistributedDataParallel themselves; `via` says so. Never keeps a module alive.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import weakref
from collections.abc import Iterator
from typing import Any

from grader.probe.hooks import code_locations
from grader.probe.hooks.imports import once_imported
from grader.probe.hooks.patches import guarded, outermost, replace
from grader.probe.models import gathered_units, layouts, model_memory, tracked_models
from grader.probe.trace import events
from grader.probe.trace.writer import writer

_MAX_NO_SYNC = 64
_MAX_WRAPS = 64
_MAX_IGNORED = 64
_LIBRARIES = {
    "accelerate": "accelerate",
    "lightning_fabric": "fabric",
    "lightning": "fabric",
    "pytorch_lightning": "fabric",
}

_num_wraps = 0
_num_no_sync = 0
_wraps: dict[int, int] = {}


def _via() -> str:
    frame = sys._getframe(1)
    for _ in range(60):
        if frame.f_back is None:
            break
        frame = frame.f_back
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package in _LIBRARIES:
            return _LIBRARIES[package]
    return ""


def _write_wrap(kind: str, module: Any, outer: Any, mesh: Any = None) -> int | None:
    global _num_wraps
    from torch import nn

    number = _num_wraps
    _num_wraps += 1
    if number >= _MAX_WRAPS:
        return None
    params = [p for p in module.parameters() if p.requires_grad]
    inside = list(module.modules())
    device_ids = getattr(outer, "device_ids", None)
    writer.write(
        events.WRAP,
        id=number,
        kind=kind,
        via=_via(),
        site=code_locations.here(),
        module=type(module).__name__,
        num_params=sum(p.numel() for p in params),
        num_tensors=len(params),
        gradient_bytes=sum(p.numel() * p.element_size() for p in params),
        num_buffers=sum(1 for _ in module.buffers()),
        num_batchnorm=sum(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in inside),
        num_sync_batchnorm=sum(isinstance(m, nn.SyncBatchNorm) for m in inside),
        param_devices=sorted({str(p.device) for p in params}),
        device_ids=[getattr(d, "index", d) for d in device_ids] if device_ids else None,
        broadcast_buffers=getattr(outer, "broadcast_buffers", None),
        find_unused_parameters=getattr(outer, "find_unused_parameters", None),
        **_ignored(module, outer),
        **layouts.of_wrapper(outer, mesh),
    )
    return number


def _ignored(module: Any, outer: Any) -> dict[str, list[str]]:
    """Parameters with a gradient that a wrapper was told to leave alone."""
    told = getattr(outer, "parameters_to_ignore", ())
    names = (
        [name for name, p in module.named_parameters() if name in told and p.requires_grad] if told else []
    )
    return {"ignored": names[:_MAX_IGNORED]} if names else {}


def _trained(module: Any, *, sharded: bool = False) -> tracked_models.TrackedModel:
    known = tracked_models.track(module)
    known.trains = True
    known.stepped = sharded  # only an optimizer can step what lies in parts
    return known


def _wrapped_ddp(_result: None, _started_s: float, ddp: Any, *_args: Any, **_kwargs: Any) -> None:
    known = _trained(ddp.module)
    known.wrapper = weakref.ref(ddp)
    known.wrap = _write_wrap("ddp", ddp.module, ddp)
    known.held = {id(p): name for name, p in ddp.module.named_parameters() if p.requires_grad}
    known.frozen = {id(p) for p in ddp.module.parameters() if not p.requires_grad}
    if known.wrap is not None:
        _wraps[id(ddp)] = known.wrap
        weakref.finalize(ddp, _wraps.pop, id(ddp), None).atexit = False


def _wrapped_data_parallel(_result: None, _started_s: float, outer: Any, *_args: Any, **_kwargs: Any) -> None:
    _trained(outer).wrap = _write_wrap("data_parallel", outer.module, outer)


def _wrapped_fsdp(_result: None, _started_s: float, outer: Any, *_args: Any, **_kwargs: Any) -> None:
    _trained(outer, sharded=True).wrap = _write_wrap("fsdp", outer, outer)
    for module in outer.modules():
        model_memory.note_flat(module)


def _wrapped_fsdp2(_result: Any, _started_s: float, module: Any, *_args: Any, **kwargs: Any) -> None:
    for one in module if isinstance(module, (list, tuple)) else (module,):
        known = _trained(one, sharded=True)
        known.wrap = _write_wrap("fsdp2", one, one, kwargs.get("mesh"))
        gathered_units.note(one, known.wrap)


def _hooked(_result: Any, _started_s: float, ddp: Any, *args: Any, **kwargs: Any) -> None:
    hook = kwargs.get("hook") or next((one for one in reversed(args) if callable(one)), None)
    name = (
        f"{getattr(hook, '__module__', '')}.{getattr(hook, '__qualname__', '')}" if hook is not None else ""
    )
    writer.write(events.COMM_HOOK, wrap=_wraps.get(id(ddp)), hook=name[:200], site=code_locations.here())


@guarded("no_sync")
def _note_no_sync(op: str, ddp: Any) -> None:
    global _num_no_sync
    _num_no_sync += 1
    if _num_no_sync <= _MAX_NO_SYNC:
        writer.write(events.NO_SYNC, op=op, wrap=_wraps.get(id(ddp)), site=code_locations.here())


def _wrap_no_sync(original: Any) -> Any:
    @functools.wraps(original)
    @contextlib.contextmanager
    def no_sync(self: Any) -> Iterator[None]:
        _note_no_sync("enter", self)
        with original(self):
            yield
        _note_no_sync("exit", self)

    return no_sync


def _hook_fsdp() -> None:
    modules = sys.modules
    replace(
        [getattr(modules.get("torch.distributed.fsdp"), "FullyShardedDataParallel", None)],
        "__init__",
        outermost("fsdp", _wrapped_fsdp),
    )
    names = (
        "torch.distributed.fsdp",
        "torch.distributed.fsdp._fully_shard",
        "torch.distributed._composable.fsdp",
    )
    replace([modules.get(name) for name in names], "fully_shard", outermost("fully_shard", _wrapped_fsdp2))


def install() -> None:
    """Hook the wrappers, now or when their module is imported."""
    from torch import nn

    ddp = nn.parallel.DistributedDataParallel
    replace([ddp], "__init__", outermost("ddp", _wrapped_ddp))
    replace([ddp], "no_sync", _wrap_no_sync)
    for name in ("register_comm_hook", "_register_builtin_comm_hook", "_register_fused_optim"):
        replace([ddp], name, outermost("comm_hook", _hooked))
    replace([nn.parallel.DataParallel], "__init__", outermost("data_parallel", _wrapped_data_parallel))
    for name in ("torch.distributed.fsdp", "torch.distributed._composable.fsdp"):
        once_imported(name, _hook_fsdp)
