"""Stand-ins for GPUs: small named changes to PyTorch, made before the script where a task says so.

Each takes away one reason for which a script that was written for GPUs ends at once on a machine without them. None
changes anything where there are GPUs, and reports tell which were in place.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any


def _nccl_to_gloo() -> None:
    """`init_process_group` and `new_group` take gloo where NCCL is asked for, and bind no GPU."""
    import torch.distributed as dist

    for name in ("init_process_group", "new_group"):
        original = getattr(dist.distributed_c10d, name)
        changed = _with_gloo(original, backend_at=0 if name == "init_process_group" else 2)
        for module in (dist, dist.distributed_c10d):
            setattr(module, name, changed)


def _with_gloo(original: Callable[..., Any], backend_at: int) -> Callable[..., Any]:
    @functools.wraps(original)
    def changed(*args: Any, **kwargs: Any) -> Any:
        given = list(args)
        if len(given) > backend_at:
            given[backend_at] = _gloo_for(given[backend_at])
        if "backend" in kwargs:
            kwargs["backend"] = _gloo_for(kwargs["backend"])
        if str(kwargs.get("device_id", "")).startswith("cuda"):
            del kwargs["device_id"]
        return original(*given, **kwargs)

    return changed


def _gloo_for(backend: Any) -> Any:
    return "gloo" if "nccl" in str(backend).lower() else backend


def _batch_norm_on_cpu() -> None:
    """`convert_sync_batchnorm` leaves a network as it is: each rank's layers take the statistics of its own batch."""
    from torch.nn import SyncBatchNorm

    def convert_sync_batchnorm(module: Any, process_group: Any = None) -> Any:  # noqa: ARG001
        return module

    SyncBatchNorm.convert_sync_batchnorm = staticmethod(convert_sync_batchnorm)  # type: ignore[method-assign]


_SHIMS: dict[str, Callable[[], None]] = {
    "nccl-to-gloo": _nccl_to_gloo,
    "batch-norm-on-cpu": _batch_norm_on_cpu,
}


def put_in_place(names: Iterable[str]) -> None:
    """Make these changes in this process; raises KeyError for a name that there is not."""
    for name in names:
        _SHIMS[name]()
