"""The loss of each step and the time that a device took for it, asked for once they are there: nothing here waits.

Into the device's own queue go an event at a step's first forward pass, a copy of the loss on the device itself, and an
event at the step's end. After some steps all their losses are copied at once to memory that the device writes by
itself. When the next ones are through, that is done, and goes out with the step that is written then.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Any

from grader.probe.hooks.counters import counters

_TOGETHER = 8
"""Steps whose losses are copied at once."""
_MOST = 8
"""Such groups under way at once; what comes while so many are is not measured."""
_END_S = 0.02
"""How long the last steps are waited for when the script is over."""


class _Group:
    """Steps that are asked for together, on one device."""

    __slots__ = ("begun", "device", "done", "ended", "has_loss", "host", "losses", "numbers", "slots")

    def __init__(self, device: Any) -> None:
        self.device = device
        self.begun = [_event() for _ in range(_TOGETHER)]
        self.ended = [_event() for _ in range(_TOGETHER)]
        self.done = _event()
        self.losses, self.host = _buffers(device)
        self.slots = self.losses.split(1)
        self.has_loss = [False] * _TOGETHER
        self.numbers: list[int] = []
        """Of the steps that are over."""

    def close(self) -> None:
        """Have the losses copied; nothing is added any more."""
        _tensor().copy_(self.host, self.losses, non_blocking=True)
        self.done.record(_stream(self.device))

    def is_done(self) -> bool:
        """Whether the device has worked all of it off; a script may use several queues."""
        events = (self.done, *self.begun[: len(self.numbers)], *self.ended[: len(self.numbers)])
        return all(event.query() for event in events)

    def told(self) -> list[tuple[int, float | None, float]]:
        """Number, loss and seconds of each step, all of it done. The group is empty afterwards."""
        losses = self.host.tolist()
        steps = [
            (n, losses[i] if self.has_loss[i] else None, self.begun[i].elapsed_time(self.ended[i]) / 1000)
            for i, n in enumerate(self.numbers)
        ]
        self.numbers = []
        return steps


_group: _Group | None = None
"""What steps are added to."""
_going = False
"""Whether a step has begun there and is not over."""
_under_way: deque[_Group] = deque()
_free: list[_Group] = []
_asks = False
"""Whether a group was closed since it was last asked for any."""


def on_device(tensor: Any) -> bool:
    """Whether what is done with a tensor is done on a device, while the script goes on."""
    return bool(tensor.is_cuda)


def begin(device: Any) -> None:
    """A step's first forward pass is about to be launched on that device."""
    global _going, _group
    if _group is not None and _group.device != device:
        _close()
    if _group is None:
        if len(_under_way) >= _MOST:
            return
        _group = next((one for one in _free if one.device == device), None)
        if _group is None:
            _group = _Group(device)
        else:
            _free.remove(_group)
    _going = True
    _group.has_loss[len(_group.numbers)] = False  # one that never came to an end may have left it
    _group.begun[len(_group.numbers)].record(_stream(device))


def note_loss(loss: Any) -> None:
    """Have the step's loss copied as soon as it is there; of several the last one counts."""
    if not _going or _group is None or loss.device != _group.device:
        return
    base, place = _tensor(), len(_group.numbers)
    loss = base.detach(loss)
    base.copy_(_group.slots[place], base.reshape(loss, (1,)) if base.dim(loss) > 1 else loss)
    _group.has_loss[place] = True


def end() -> None:
    """The step that was just counted is launched to its end."""
    global _going
    if not _going or _group is None:
        return
    _going = False
    _group.ended[len(_group.numbers)].record(_stream(_group.device))
    _group.numbers.append(counters.steps - 1)
    if len(_group.numbers) == _TOGETHER:
        _close()


def _close() -> None:
    global _asks, _group
    if _group is not None and _group.numbers:
        _group.close()
        _under_way.append(_group)
        _asks = True
    _group = None


def told_now() -> dict[str, list[Any]]:
    """What is there of steps that ended some time ago: field `later` of a STEP event; empty where nothing is."""
    global _asks
    if not _asks:
        return {}
    _asks = False
    steps: list[tuple[int, float | None, float]] = []
    while _under_way and _under_way[0].is_done():
        group = _under_way.popleft()
        steps += group.told()
        _free.append(group)
    if not steps:
        return {}
    return {
        "n": [n for n, _, _ in steps],
        "loss": [loss for _, loss, _ in steps],
        "device_s": [round(seconds, 9) for _, _, seconds in steps],
    }


def told_at_end() -> dict[str, list[Any]]:
    """The same of all that is there when the script is over; nothing of a device that has failed."""
    global _asks
    try:
        _close()
        until = time.monotonic() + _END_S
        while _under_way and not _under_way[-1].is_done() and time.monotonic() < until:
            time.sleep(_END_S / 20)
        _asks = bool(_under_way)
        return told_now()
    except RuntimeError:
        return {}


def _tensor() -> Any:
    """The class whose methods no subclass of the script's answers for."""
    import torch

    return torch._C.TensorBase


def _event() -> Any:
    import torch

    return torch.cuda.Event(enable_timing=True)


def _stream(device: Any) -> Any:
    """The queue that a script's next calls go into on that device."""
    import torch

    return torch.cuda.current_stream(
        device.index
    )  # by number: to find out a device's costs more than the call


def _buffers(device: Any) -> tuple[Any, Any]:
    """Numbers on the device, and as many that it can write to without anybody's waiting."""
    import torch

    losses = torch.zeros(_TOGETHER, dtype=torch.float32, device=device)
    return losses, torch.zeros(_TOGETHER, dtype=torch.float32, device="cpu", pin_memory=True)
