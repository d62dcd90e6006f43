"""What a rank exchanged with the others over the whole run: calls and bytes of each line of the script.

Collectives are told one by one, the many only now and then; here all of them count, and are told once, at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from grader.probe.hooks.code_locations import CodeLocation
from grader.probe.hooks.patches import guarded
from grader.probe.trace import events
from grader.probe.trace.writer import writer

_MAX_KEYS = 512
_PAYLOAD = {
    "all_gather": (1, "tensor"),
    "all_gather_coalesced": (1, "input_tensor_list"),
    "all_gather_into_tensor": (1, "input_tensor"),
    "all_to_all": (1, "input_tensor_list"),
    "all_to_all_single": (1, "input"),
    "reduce_scatter": (1, "input_list"),
    "reduce_scatter_tensor": (1, "input"),
}
"""Where what a rank puts in is not the first argument: position and name."""
_PEERS = {
    "send": "dst",
    "isend": "dst",
    "send_object_list": "dst",
    "recv": "src",
    "irecv": "src",
    "recv_object_list": "src",
}
"""Messages between two ranks, and what names the other one."""

_MAX_LOOKS, _MAX_NUMBERS = 256, 1 << 16
"""Calls of which it is looked at what the rank puts in, and numbers in one of them."""
_TAKES = ("recv", "irecv", "broadcast", "scatter", "barrier", "batch_isend_irecv")
"""Functions whose first tensor is what comes, or which have none; a broadcast's is on most ranks."""

_Key: TypeAlias = tuple[str, CodeLocation | None, tuple[int, ...] | None, int | None]
"""Name, line, ranks of the group where they are not all, the other rank of a message."""
_totals: dict[_Key, list[int]] = {}
_largest: dict[_Key, float | None] = {}
"""Of all numbers that this rank put in there; None where that is not known of some call."""
_looks = 0
_seen: float | None = None


def add(
    name: str, site: CodeLocation | None, ranks: list[int] | None, peer: int | None, tensors: Any
) -> None:
    """Count one call of it; `tensors`: what this rank put in, or received into, nested as it likes."""
    key = (name, site, tuple(ranks) if ranks is not None else None, peer)
    total = _totals.get(key)
    if total is None:
        if len(_totals) >= _MAX_KEYS:
            key = (name, None, None, None)
        total = _totals.setdefault(key, [0, 0, 0])
    global _seen
    before, now = _largest.get(key, 0.0), _seen
    _largest[key], _seen = (max(before, now) if before is not None and now is not None else None), None
    total[0] += 1
    size = _bytes_of(tensors)
    if size is None:
        total[2] += 1
    else:
        total[1] += size


def add_called(
    name: str,
    site: CodeLocation | None,
    ranks: list[int] | None,
    result: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> None:
    """Count one call of a function of `torch.distributed`, with its result and arguments."""
    if name == "batch_isend_irecv":
        for one in args[0] if args else kwargs["p2p_op_list"]:
            add(one.op.__name__, site, ranks, int(one.peer), one.tensor)
    elif name.endswith("barrier"):
        add(name, site, ranks, None, ())
    else:
        add(name, site, ranks, _peer(name, result, args, kwargs), payload(name, args, kwargs))


@guarded("what is put in", values=True)
def look(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Note the largest number that this rank puts into a call which is about to be made: it may be overwritten."""
    global _looks, _seen
    _seen = None
    if _looks >= _MAX_LOOKS or name in _TAKES:
        return
    _looks += 1
    tensors = [*_each(payload(name, args, kwargs))]
    if all(getattr(one, "is_cpu", False) and 0 < one.numel() <= _MAX_NUMBERS for one in tensors):
        _seen = max((float(one.detach().abs().max()) for one in tensors), default=None)


def payload(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a rank put in, or received into, nested as it likes."""
    position, keyword = _PAYLOAD.get(name, (0, "tensor"))
    return args[position] if position < len(args) else kwargs.get(keyword, kwargs.get("tensors"))


def _peer(name: str, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int | None:
    end = _PEERS.get(name)
    if end is None:
        return None
    given = kwargs.get(end, args[1] if len(args) > 1 else None)
    if given is None and (within := kwargs.get(f"group_{end}")) is not None:
        import torch.distributed as dist

        group = kwargs.get("group") or dist.distributed_c10d._get_default_group()
        given = dist.get_global_rank(group, within)
    if given is None and isinstance(result, int):
        given = result  # received from whoever sent first
    return int(given) if given is not None else None


def _bytes_of(tensors: Any) -> int | None:
    """Bytes of all tensors in it; None where it holds anything else, such as objects."""
    sizes = [
        one.numel() * one.element_size() if hasattr(one, "element_size") else None for one in _each(tensors)
    ]
    return sum(size for size in sizes if size is not None) if None not in sizes else None


def size_of(tensors: Any) -> tuple[int | None, str | None]:
    """Numbers in all tensors of it and where they lie; None where it holds none, or other things too."""
    found = [*_each(tensors)]
    if not found or not all(hasattr(one, "element_size") for one in found):
        return None, None
    return sum(one.numel() for one in found), str(found[0].device)


def _each(tensors: Any) -> Iterator[Any]:
    if isinstance(tensors, list | tuple):
        for one in tensors:
            yield from _each(one)
    else:
        yield tensors


@guarded("traffic")
def tell() -> None:
    """Write everything that was counted."""
    for (name, site, ranks, peer), (calls, size, unknown) in _totals.items():
        writer.write(
            events.TRAFFIC,
            name=name,
            site=site,
            ranks=ranks,
            peer=peer,
            calls=calls,
            bytes=size if not unknown else None,
            largest=_largest.get((name, site, ranks, peer)),
        )
