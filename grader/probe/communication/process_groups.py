"""The default process group: when it begins, whoever forms it, and when it ends.

Adds no collective of its own. What DDP's reducer does below Python shows in the sequence number alone.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from grader.probe.communication import flight_recorder
from grader.probe.hooks import code_locations
from grader.probe.hooks.patches import guarded, outermost, replace
from grader.probe.processes import joining
from grader.probe.trace import events
from grader.probe.trace.writer import writer

_open = False
_ended = False
_last_sequence: int | None = None
_world: Any = None  # of torch.distributed: it holds the default group
_identity: tuple[str, int, int] = ("", -1, 0)


def sequence() -> int | None:
    """Collectives that the default group has run so far, also those below Python; None where it can't tell."""
    group = _world.default_pg if _world is not None else None
    if group is None:
        return _last_sequence
    try:
        return int(group._get_sequence_number_for_group())
    except (RuntimeError, AttributeError):
        return None


def position() -> tuple[int, int]:
    """This rank in the default group, and how many are in it; 0 and 1 where there is none."""
    group = _world.default_pg if _world is not None else None
    return (group.rank(), group.size()) if group is not None else (0, 1)


def destroyed() -> bool | None:
    """Whether the default group was ended by the script; None where there never was one."""
    return _ended if _open or _ended else None


def _timeout_s(group: Any, device: str) -> float | None:
    import torch

    try:
        return float(group._get_backend(torch.device(device)).options._timeout.total_seconds())
    except (RuntimeError, AttributeError):
        return None


def _backend(group: Any) -> str:
    """Name of the group's backend; of several, that of the device which a script would train on here."""
    import torch
    import torch.distributed as dist

    name = str(dist.get_backend(group))
    if name in ("gloo", "nccl"):
        return name
    try:
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        return str(group._get_backend(device).name())
    except (RuntimeError, AttributeError):
        return name


def _began(_result: None, started_s: float, *_args: Any, **_kwargs: Any) -> None:
    global _open, _ended, _identity
    import torch.distributed as dist

    _open, _ended = True, False
    flight_recorder.begin()
    group = dist.distributed_c10d._get_default_group()
    _identity = (_backend(group), dist.get_rank(), dist.get_world_size())
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


def holders(name: str) -> list[Any]:
    """Every loaded module of torch.distributed that a function of its may be called from: some import it by name."""
    import torch.distributed as dist

    original = getattr(dist.distributed_c10d, name, None)
    loaded = [module for key, module in list(sys.modules.items()) if key.startswith("torch.distributed")]
    return [dist.distributed_c10d, *(m for m in loaded if getattr(m, "__dict__", {}).get(name) is original)]


def install() -> None:
    """Hook what begins and ends the default group, wherever it is called from."""
    import torch.distributed as dist

    global _world
    if not dist.is_available():
        return
    _world = dist.distributed_c10d._world
    began = outermost("init_process_group", _began)
    replace(
        holders("init_process_group"), "init_process_group", lambda init: began(joining.before_group(init))
    )
    replace(holders("destroy_process_group"), "destroy_process_group", _wrap_destroy)
