"""What one rank really holds of a trained model: its own bytes of parameters and optimizer state, and the whole's.

Also how many numbers each group of parameters has: what most of the model is trained with is told by that.

Told once for each optimizer, after its second step, when its state is there. Reads shapes alone, no values.
"""

from __future__ import annotations

import weakref
from typing import Any

from grader.probe.hooks import code_locations
from grader.probe.hooks.patches import guarded, skip_compiling
from grader.probe.models.fingerprints import is_sharded
from grader.probe.models.whole_copies import whole_copies
from grader.probe.trace import events
from grader.probe.trace.writer import writer

_AFTER = 2
_MAX_OPTIMIZERS = 8
_MAX_GROUPS = 256

_steps: dict[int, int] = {}
_whole: dict[int, int] = {}
"""Numbers of all of a parameter, by its id, where FSDP1 lets this rank have a part of it."""
_num_events = 0


def note_flat(outer: Any) -> None:
    """Note how long the parameters are that FSDP1 has laid into one: its optimizer is given parts of that."""
    flat = getattr(outer, "_flat_param", None)
    # Without `use_orig_params` it has none: the optimizer is given the one itself, which knows its length.
    parts = getattr(flat, "_params", None) or ()
    for param, shape in zip(parts, getattr(flat, "_shapes", ()), strict=False):
        _whole[id(param)] = shape.numel()
        weakref.finalize(param, _whole.pop, id(param), None).atexit = False


def _elements(param: Any) -> tuple[int, int, bool]:
    """Numbers of a parameter on this rank, numbers of all of it, and whether it is a part."""
    if is_sharded(param):
        return param.to_local().numel(), param.numel(), True
    laid_out = getattr(param, "_unpadded_unsharded_size", None)
    whole = laid_out.numel() if laid_out is not None else _whole.get(id(param))
    return param.numel(), param.numel() if whole is None else whole, whole is not None


def _state_bytes(optimizer: Any) -> int:
    """Bytes of an optimizer's state on this rank."""
    found = 0
    for values in optimizer.state.values():
        for tensor in values.values() if isinstance(values, dict) else ():
            if hasattr(tensor, "element_size") and hasattr(tensor, "numel"):
                found += (tensor.to_local() if is_sharded(tensor) else tensor).numel() * tensor.element_size()
    return found


@guarded("holdings")
def _after_step(optimizer: Any) -> None:
    global _num_events
    key = id(optimizer)
    if key not in _steps:
        if len(_steps) >= _MAX_OPTIMIZERS:
            return
        _steps[key] = 0
        weakref.finalize(optimizer, _steps.pop, key, None).atexit = False
    _steps[key] += 1
    if _steps[key] != _AFTER or _num_events >= _MAX_OPTIMIZERS:
        return
    _num_events += 1
    groups = [group["params"] for group in optimizer.param_groups]
    params = [p for group in groups for p in group]
    own = whole = num_sharded = 0
    for param in params:
        here, everywhere, is_part = _elements(param)
        own += here * param.element_size()
        whole += everywhere * param.element_size()
        num_sharded += is_part
    state = _state_bytes(optimizer)
    copies, copied = whole_copies(params)
    writer.write(
        events.HELD,
        kind=type(optimizer).__name__,
        num_tensors=len(params),
        num_sharded=num_sharded,
        param_bytes=own,
        whole_param_bytes=whole,
        state_bytes=state,
        # Parts of parameters have parts of the state, and none where a rank has nothing of one.
        whole_state_bytes=state * whole // own if own else state,
        whole_copies=copies,
        copied_bytes=copied,
        group_elements=[sum(p.numel() for p in group if p.requires_grad) for group in groups[:_MAX_GROUPS]],
        site=code_locations.here(),
    )


def install() -> None:
    """Hook the ends of optimizer steps."""
    from torch.compiler import is_compiling
    from torch.optim.optimizer import register_optimizer_step_post_hook

    def after(optimizer: Any, _args: Any, _kwargs: Any) -> None:
        # Every step of a run comes by here, and two of them matter.
        if _steps.get(id(optimizer), 0) < _AFTER and not is_compiling():
            _after_step(optimizer)

    skip_compiling(after)
    register_optimizer_step_post_hook(after)
