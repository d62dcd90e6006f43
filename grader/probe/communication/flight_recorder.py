"""Tells the supervisor, when it asks, which collectives this rank has begun and which of them are not over.

torch writes them down by itself, for NCCL and for gloo (its flight recorder). A thread of ours waits for the question,
because the main thread may be inside a collective by then, where it holds no interpreter lock. The thread begins with
the first process group, and nothing is looked at before somebody asks.

A question is one byte, the answer one line of JSON `{"asked": <byte>, "groups": […]}` with at most 8 groups: `group`
(backend and torch's name), `ranks` (its members, [] unknown), `enqueued` (number of the last collective that was
begun), `first` (of those that are not over, the oldest: number, name, elements or null, the submission's lines that led
to it, whether they end at a backward pass of which torch began it by itself; null where there is none), `recent`
(number, name and elements of the last 32), `counts` (how often each was begun; {} where the recorder has forgotten the
first ones). Sends and receives are left out: one that was asked for early proves nothing.
"""

from __future__ import annotations

import _thread
import fcntl
import json
import os
import pickle
import resource
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from math import prod
from typing import Any

from grader.probe.communication.collective_names import METHODS
from grader.probe.gradients import backward_passes
from grader.probe.hooks import code_locations
from grader.probe.hooks.code_locations import CodeLocation
from grader.probe.hooks.patches import guarded

MOST_BYTES = 1 << 16
"""Of one answer."""
_MOST_GROUPS = 8
_MOST_RECENT = 32
_MOST_NAMES = 32
_MOST_RANKS = 1024
_MOST_LINES = 8
# Names below `torch.distributed` → those that scripts write.
_NAMES = METHODS | {
    "_all_gather_base": "all_gather_into_tensor",
    "_reduce_scatter_base": "reduce_scatter_tensor",
    "all_reduce_barrier": "barrier",
}
# Private references: what the script puts in their place is its own affair.
_read, _write, _fstat, _loads, _dumps = os.read, os.write, os.fstat, pickle.loads, json.dumps

_fd = -1
_identity = (0, 0)
_running = False


def install(fd: int) -> None:
    """Remember where questions come from; `fd` is this module's own from now on.

    Raises:
        OSError: it is not open.
    """
    global _fd, _identity
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    _fd = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, max(min(soft - 32, 4000), 3))
    os.close(fd)
    stat = os.fstat(_fd)
    _identity = (stat.st_dev, stat.st_ino)


@guarded("flight recorder")
def begin() -> None:
    """Be ready to answer; there is a process group now."""
    global _running
    if _fd >= 0 and not _running:
        _running = True
        # Not `threading`: what the script counts there are its own threads.
        _thread.start_new_thread(_answer, ())


def _answer() -> None:
    try:
        while (asked := _read(_fd, 1)) and _ours():
            line = _dumps({"asked": asked[0], "groups": collectives()}, separators=(",", ":")).encode()
            if len(line) <= MOST_BYTES:
                _write(_fd, line)
    except Exception:  # noqa: BLE001  # the script closed it, or this torch tells otherwise: nothing is told
        return


def _ours() -> bool:
    stat = _fstat(_fd)
    return (stat.st_dev, stat.st_ino) == _identity


def collectives() -> list[dict[str, Any]]:
    """What the recorders of this process hold, group by group."""
    import torch.distributed as dist

    world = dist.distributed_c10d._world
    members = {
        str(name): sorted(world.pg_group_ranks.get(group, ())) for group, name in world.pg_names.items()
    }
    found = [group for dump in _recorded(world.pg_names) for group in summary(_loads(dump), members)]
    # Those that are waited for first: they must not fall off the end.
    return sorted(found, key=lambda group: group["first"] is None)[:_MOST_GROUPS]


def _recorded(groups: Iterable[Any]) -> Iterator[bytes]:
    """What each recorder of this process holds; older versions of torch, and those built without CUDA, have fewer.

    NCCL's first implementation has one of its own. The others had one together until each got its own, by its name.
    """
    from torch._C import _distributed_c10d as c10d

    if hasattr(c10d, "_dump_nccl_trace"):
        yield c10d._dump_nccl_trace(includeStackTraces=True)
    if not hasattr(c10d, "_dump_fr_trace"):
        return
    if not hasattr(c10d, "FlightRecorderHook"):
        yield c10d._dump_fr_trace(includeStackTraces=True)
        return
    for backend in {group._get_backend(kind).name() for group in groups for kind in group._device_types}:
        yield c10d._dump_fr_trace(includeStackTraces=True, backend=backend)


def summary(dump: Mapping[str, Any], members: Mapping[str, list[int]]) -> list[dict[str, Any]]:
    """A dump of one recorder, as torch makes it, group by group.

    Args:
        dump: the dump, with or without stacks.
        members: global ranks of each group, by torch's name for it.
    """
    by_group: dict[str, list[Mapping[str, Any]]] = {}
    entries = [entry for entry in dump.get("entries") or () if not entry["is_p2p"]]
    for entry in entries:
        backend = entry["profiling_name"].partition(":")[0]
        by_group.setdefault(f"{backend}:{entry['process_group'][0]}", []).append(entry)
    whole = not dump.get("entries") or dump["entries"][0]["record_id"] == 0
    return [
        {
            "group": name,
            "ranks": members.get(name.partition(":")[2], [])[:_MOST_RANKS],
            "enqueued": begun[-1]["collective_seq_id"],
            "first": _first(begun),
            "recent": [_plain(entry) for entry in begun[-_MOST_RECENT:]],
            "counts": dict(Counter(_name(e) for e in begun).most_common(_MOST_NAMES)) if whole else {},
        }
        for name, begun in by_group.items()
    ]


def _first(begun: list[Mapping[str, Any]]) -> list[Any] | None:
    """The oldest that is not over: one after the other, so that all before the last one that is over are over, too.

    Those of a coalesced call are never marked by themselves.
    """
    over = [i for i, entry in enumerate(begun) if entry["retired"] or entry["state"] == "completed"]
    waiting = begun[over[-1] + 1 :] if over else begun
    if not waiting:
        return None
    lines = list(_lines(waiting[0].get("frames") or ()))
    # Backward passes run in a thread of torch's own, where no line of Python shows who asked for them.
    last = backward_passes.last_site
    return [*_plain(waiting[0]), lines or [*filter(None, [last])], not lines and last is not None]


def _plain(entry: Mapping[str, Any]) -> list[Any]:
    sizes = entry["input_sizes"]
    return [entry["collective_seq_id"], _name(entry), sum(map(prod, sizes)) if sizes else None]


def _name(entry: Mapping[str, Any]) -> str:
    """`all_reduce` for `nccl:all_reduce`."""
    name: str = entry["profiling_name"].partition(":")[2].lower()
    return _NAMES.get(name, name)


def _lines(frames: Iterable[Mapping[str, Any]]) -> Iterator[CodeLocation]:
    """The submission's frames of a stack, innermost first."""
    found = ((code_locations.relative(frame["filename"]), frame) for frame in frames)
    mine = ((path, frame["line"], frame["name"]) for path, frame in found if path is not None)
    return islice(mine, _MOST_LINES)
