"""What one rank really holds of a trained model: its own bytes of parameters and optimizer state, and the whole's.

Also how many numbers each group of parameters has: what most of the model is trained with is told by that.

Told once for each optimizer, after its second step, when its state is there. Reads shapes alone, no values.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

from grader.probe.hooks import code_locations
from grader.probe.hooks.patches import guarded, skip_compiling
from grader.probe.models.fingerprints import is_sharded
from grader.probe.trace import events
from grader.probe.trace.writer import writer

_AFTER = 2
_MAX_OPTIMIZERS = 8
_MAX_GROUPS = 256

_steps: dict[int, int] = {}
_num_events = 0


def _bytes(tensors: Iterator[Any]) -> tuple[int, int, int]:
    """Bytes on this rank, bytes of the whole tensors, and how many of them are sharded."""
    own = whole = num_sharded = 0
    for tensor in tensors:
        local = tensor.to_local() if is_sharded(tensor) else tensor
        own += local.numel() * local.element_size()
        whole += tensor.numel() * tensor.element_size()
        num_sharded += local is not tensor
    return own, whole, num_sharded


def _state(optimizer: Any) -> Iterator[Any]:
    for values in optimizer.state.values():
        if isinstance(values, dict):
            yield from (v for v in values.values() if hasattr(v, "element_size") and hasattr(v, "numel"))


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
    own, whole, num_sharded = _bytes(iter(params))
    state_own, state_whole, _ = _bytes(_state(optimizer))
    writer.write(
        events.HELD,
        kind=type(optimizer).__name__,
        num_tensors=len(params),
        num_sharded=num_sharded,
        param_bytes=own,
        whole_param_bytes=whole,
        state_bytes=state_own,
        whole_state_bytes=state_whole,
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
