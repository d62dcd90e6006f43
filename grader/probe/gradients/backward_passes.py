"""Backward passes and gradients that are asked for, as they happen: their number, the loss, what changes among them."""

from __future__ import annotations

import functools
import weakref
from types import FrameType
from typing import Any

from grader.probe.gradients import loss_origins
from grader.probe.gradients.gradient_clearing import look_after, look_again, watches
from grader.probe.hooks import code_locations
from grader.probe.hooks.counters import counters
from grader.probe.hooks.patches import capturing, guarded, outermost, replace
from grader.probe.models import tracked_models, trained_models
from grader.probe.models.fingerprints import is_sharded
from grader.probe.processes import training_threads
from grader.probe.steps import device_steps
from grader.probe.trace import events
from grader.probe.trace.writer import writer

_MAX_BACKWARDS = 8
_MANY_GRADIENTS = 16
"""Within one step, from which on weights are looked at, whenever their number has doubled."""

_MANY_CHANGES = 2

_unscaled: tuple[weakref.ref[Any] | None, Any] = (None, None)
"""What a gradient scaler made last, and of which loss."""

last_site: code_locations.CodeLocation | None = None
"""Where the last backward pass was asked for of which that is told."""

_in_backward = False
_between_steps: tuple[int, list[float | None], int] = (-1, [], 0)
"""Steps so far, and fingerprints of trained weights, when many gradients had been taken since the last of them; how
often these had changed by then: once is what sharpness-aware minimisation does."""


def going_backward() -> bool:
    """Whether a backward pass is on its way, in whichever thread."""
    return _in_backward


def differentiating(frame: FrameType | None) -> bool:
    """Whether that frame is inside the forward pass of an autograd function that gradients will come back through."""
    import torch

    while frame is not None:
        code = frame.f_code
        if code.co_name == "forward" and code.co_argcount:
            context = frame.f_locals.get(code.co_varnames[0])
            if isinstance(context, torch._C._FunctionBase):
                return any(context.needs_input_grad)
        frame = frame.f_back
    return False


@guarded("backward", values=True)
def _backward(tensors: Any) -> None:
    global last_site
    # Every step pays for this: nothing is called that has nothing to do.
    for action in tuple(tracked_models.before_pass):
        action()
    if counters.bypass is not None:
        tracked_models.confirm_bypass()
    if watches:
        look_again()
    counters.backwards += 1
    counters.micro_backwards += 1
    counters.micro_unsynced += counters.synced is False
    if counters.micro_backwards >= _MANY_GRADIENTS:
        _look_between_steps()
    tensor = tensors[0] if isinstance(tensors, (list, tuple)) and len(tensors) == 1 else tensors
    if is_sharded(tensor):
        tensor = tensor._local_tensor  # to ask the whole for its value might take a collective
    _note_loss(tensor)
    loss_origins.tell_cross_entropies(tensor)
    if counters.backwards <= _MAX_BACKWARDS:
        made = loss_origins.origin(tensor) or {}
        given = hasattr(tensor, "numel") and tensor.numel() != 1
        last_site = code_locations.here()
        writer.write(events.BACKWARD, loss=counters.loss, site=last_site, given=given, **made)


@guarded("loss", values=True)
def _note_loss(tensor: Any) -> None:
    global _unscaled
    if not hasattr(tensor, "numel") or tensor.numel() != 1:
        return
    scaled, before = _unscaled
    if scaled is not None and scaled() is tensor:
        tensor = before
    _unscaled = (None, None)
    if device_steps.on_device(tensor):
        device_steps.note_loss(tensor)
    elif tensor.is_cpu:
        counters.loss = tensor.item()


@guarded("unstepped", values=True)
def _look_between_steps() -> None:
    """Look for weights that change from gradient to gradient although nobody steps."""
    global _between_steps
    taken = counters.micro_backwards + counters.derivatives
    if taken < _MANY_GRADIENTS or taken & (taken - 1) or counters.stepping:
        return
    steps, before, changes = _between_steps
    held = trained_models.some_weights()
    changes = changes + (held != before) if steps == counters.steps else 0
    if changes == _MANY_CHANGES:
        writer.write(events.UNSTEPPED, n=counters.steps, gradients=taken, site=code_locations.here())
    _between_steps = (counters.steps, held, changes)


@guarded("backward", values=True)
def _look_after() -> None:
    look_after()


def _scaled(result: Any, _started_s: float, _scaler: Any, outputs: Any, *_args: Any, **_kwargs: Any) -> None:
    """A loss was multiplied so that its gradients keep their digits: what it was before is the loss."""
    global _unscaled
    if hasattr(outputs, "numel") and result is not outputs:
        _unscaled = (weakref.ref(result), outputs.detach())


def install() -> None:
    """Hook what takes gradients."""
    import torch

    replace([torch.amp.GradScaler], "scale", outermost("scale", _scaled))

    replace([torch.autograd], "backward", _wrap_backward)
    replace([torch.autograd], "grad", _wrap_grad)


def _wrap_grad(original: Any) -> Any:
    from torch.compiler import is_compiling

    @functools.wraps(original)
    def grad(*args: Any, **kwargs: Any) -> Any:
        if not (is_compiling() or capturing()):
            counters.derivatives += 1
            counters.all_derivatives += 1
            if counters.derivatives >= _MANY_GRADIENTS:
                _look_between_steps()
        return original(*args, **kwargs)

    return grad


def _wrap_backward(original: Any) -> Any:
    from torch.compiler import is_compiling

    @functools.wraps(original)
    def backward(tensors: Any, *args: Any, **kwargs: Any) -> None:
        global _in_backward
        if not is_compiling():
            training_threads.meet()
        if is_compiling() or _in_backward:  # inside: checkpointing recomputes and goes backward on its own
            original(tensors, *args, **kwargs)
            return
        _in_backward = True
        try:
            _backward(tensors)
            original(tensors, *args, **kwargs)
            if watches:
                _look_after()
        finally:
            _in_backward = False

    return backward
