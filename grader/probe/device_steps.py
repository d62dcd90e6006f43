"""The loss of each step and the time that a device took for it, asked for once they are there: nothing here waits.

Into the device's own queue go an event at a step's first forward pass, a copy of the loss to memory that the device
writes by itself, and an event at the step's end. Some steps later all that is done, and goes out with the step that is
written then.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from grader.probe.counters import counters

_LATER = 8
"""Steps after which it is asked for."""
_MOST = 64
"""Steps under way at once; what comes while so many are is not measured."""


class _DeviceStep:
    """One step on its way through a device's queue."""

    __slots__ = ("begun", "device", "ended", "n", "place")

    def __init__(self, device: Any, begun: Any) -> None:
        self.device = device
        self.begun = begun
        self.ended: Any = None
        self.place: Any = None  # of its loss
        self.n = -1


_current: _DeviceStep | None = None
_under_way: deque[_DeviceStep] = deque()
_places: list[Any] = []
"""Page-locked numbers that no step uses."""


def on_device(tensor: Any) -> bool:
    """Whether what is done with a tensor is done on a device, while the script goes on."""
    return bool(tensor.is_cuda)


def begin(device: Any) -> None:
    """A step's first forward pass is about to be launched on that device."""
    global _current
    if _current is not None and _current.place is not None:
        _places.append(_current.place)  # that one never came to an end; what is copied next is copied later
    _current = _DeviceStep(device, _mark(device)) if len(_under_way) < _MOST else None


def note_loss(loss: Any) -> None:
    """Have the step's loss copied as soon as it is there; of several the last one counts."""
    import torch

    now = _current
    if now is None or loss.device != now.device:
        return
    if now.place is None:
        if not _places:
            _places.extend(_page_locked(_MOST))
        now.place = _places.pop()
    base = torch._C.TensorBase
    with torch.no_grad():
        base.copy_(now.place, base.reshape(base.detach(loss), (1,)), non_blocking=True)


def end() -> None:
    """The step that was just counted is launched to its end."""
    global _current
    if _current is not None:
        now, _current = _current, None
        now.n = counters.steps - 1
        now.ended = _mark(now.device)
        _under_way.append(now)


def told_now(later: int = _LATER) -> dict[str, list[Any]]:
    """What is there of steps that ended so many steps ago: field `later` of a STEP event; empty where nothing is."""
    found: list[_DeviceStep] = []
    while _under_way and _under_way[0].n <= counters.steps - later and _is_done(_under_way[0]):
        found.append(_under_way.popleft())
    if not found:
        return {}
    _places.extend(one.place for one in found if one.place is not None)
    return {
        "n": [one.n for one in found],
        "loss": [None if one.place is None else one.place.item() for one in found],
        "device_s": [round(one.begun.elapsed_time(one.ended) / 1000, 9) for one in found],
    }


def _is_done(one: _DeviceStep) -> bool:
    return bool(one.begun.query() and one.ended.query())


def _mark(device: Any) -> Any:
    """An event in the queue that a script's next calls go into on that device."""
    import torch

    event = torch.cuda.Event(enable_timing=True)
    event.record(torch.cuda.current_stream(device))
    return event


def _page_locked(number: int) -> list[Any]:
    """Numbers that a device can write to without anybody's waiting; made once in a run, which may itself wait."""
    import torch

    return list(torch.empty(number, dtype=torch.float32, pin_memory=True).split(1))
