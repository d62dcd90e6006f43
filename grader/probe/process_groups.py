"""The process group: when it begins and ends, and which collectives the script calls by name, from which line.

Adds no collective of its own. What DDP's reducer does below Python shows in the sequence number alone.
"""

from __future__ import annotations

import functools
from typing import Any

from grader.probe import code_locations, events
from grader.probe.code_locations import CodeLocation
from grader.probe.patches import guarded, outermost, replace
from grader.probe.writer import writer

_FIRST = 64
_EVERY = 64
COLLECTIVES = (
    "all_reduce",
    "all_reduce_coalesced",
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "gather",
    "gather_object",
    "irecv",
    "isend",
    "monitored_barrier",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
)

_calls: dict[tuple[str, CodeLocation | None], int] = {}
_open = False
_ended = False
_last_sequence: int | None = None
_identity: tuple[str, int, int] = ("", -1, 0)


def sequence() -> int | None:
    """Collectives that the default group has run so far, also those below Python; None where it can't tell."""
    import torch.distributed as dist

    if not dist.is_initialized():
        return _last_sequence
    try:
        group: Any = dist.distributed_c10d._get_default_group()
        return int(group._get_sequence_number_for_group())
    except (RuntimeError, AttributeError):
        return None


def destroyed() -> bool | None:
    """Whether the default group was ended by the script; None where there never was one."""
    return _ended if _open or _ended else None


def _timeout_s(group: Any, device: str) -> float | None:
    import torch

    try:
        return float(group._get_backend(torch.device(device)).options._timeout.total_seconds())
    except (RuntimeError, AttributeError):
        return None


def _began(_result: None, started_s: float, *_args: Any, **_kwargs: Any) -> None:
    global _open, _ended, _identity
    import torch.distributed as dist

    _open, _ended = True, False
    _identity = (str(dist.get_backend()), dist.get_rank(), dist.get_world_size())
    group = dist.distributed_c10d._get_default_group()
    bound = getattr(group, "bound_device_id", None)
    writer.write(
        events.GROUP,
        op="init",
        backend=_identity[0],
        rank=_identity[1],
        world_size=_identity[2],
        device=str(bound) if bound is not None else None,
        timeout_s=_timeout_s(group, "cuda" if _identity[0] == "nccl" else "cpu"),
        sequence=sequence(),
        site=code_locations.here(),
        seconds=round(writer.now() - started_s, 6),
    )


@guarded("group sequence")
def _remember_sequence() -> None:
    global _last_sequence
    _last_sequence = sequence()


@guarded("destroy_process_group")
def _destroyed(started_s: float) -> None:
    global _open, _ended
    import torch.distributed as dist

    if dist.is_initialized() or not _open:
        return  # a group of its own was ended, not the default one
    _open, _ended = False, True
    writer.write(
        events.GROUP,
        op="destroy",
        backend=_identity[0],
        rank=_identity[1],
        world_size=_identity[2],
        device=None,
        timeout_s=None,
        sequence=_last_sequence,
        site=code_locations.here(),
        seconds=round(writer.now() - started_s, 6),
    )


def _wrap_destroy(original: Any) -> Any:
    @functools.wraps(original)
    def destroy_process_group(*args: Any, **kwargs: Any) -> None:
        started_s = writer.now()
        _remember_sequence()  # nobody can ask afterwards
        original(*args, **kwargs)
        _destroyed(started_s)

    return destroy_process_group


def _called(name: str, started_s: float, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    site = code_locations.here()
    n = _calls.get((name, site), 0) + 1
    _calls[name, site] = n
    if n > _FIRST and n % _EVERY:
        return
    tensor = args[0] if args else next(iter(kwargs.values()), None)
    numel = getattr(tensor, "numel", None)
    device = getattr(tensor, "device", None)
    writer.write(
        events.COLLECTIVE,
        name=name,
        site=site,
        n=n,
        reduce_op=_reduce_op(name, args, kwargs),
        numel=numel() if callable(numel) else None,
        device=str(device) if device is not None else None,
        async_op=bool(kwargs.get("async_op", False)),
        seconds=round(writer.now() - started_s, 6),
    )


def _reduce_op(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    import torch.distributed as dist

    kinds = (dist.ReduceOp, dist.ReduceOp.RedOpType)
    for value in (kwargs.get("op"), *args):
        if isinstance(value, kinds):
            return str(value).rpartition(".")[2]
    return "SUM" if "reduce" in name else ""


def install() -> None:
    """Hook the functions in both places where scripts find them."""
    import torch.distributed as dist

    if not dist.is_available():
        return
    places = [dist, dist.distributed_c10d]
    replace(places, "init_process_group", outermost("init_process_group", _began))
    replace(places, "destroy_process_group", _wrap_destroy)
    for name in COLLECTIVES:
        replace(places, name, _collective(name))


def _collective(name: str) -> Any:
    def after(_result: Any, started_s: float, *args: Any, **kwargs: Any) -> None:
        _called(name, started_s, args, kwargs)

    return outermost("collective", after)
