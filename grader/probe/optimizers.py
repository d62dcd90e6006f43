"""Optimizer steps as they happen: their number, pace, loss and learning rate, and fingerprints of what they step on.

Uses torch's public global step hooks. Counts the outermost optimizer only: a sharding optimizer steps others inside.
"""

from __future__ import annotations

import functools
import math
import os
import sys
import weakref
from types import FrameType
from typing import Any

from grader.probe import code_locations, events, models, sampling
from grader.probe.counters import counters
from grader.probe.fingerprints import choose, fingerprint
from grader.probe.gradients import Watch, look_again, missing, watch, watches
from grader.probe.models import TrackedModel
from grader.probe.parameter_changes import report_parameter_changes
from grader.probe.patches import guarded, replace, skip_compiling
from grader.probe.writer import writer

FIRST_SAMPLED = 8
"""Steps of an optimizer that are all fingerprinted."""

_EVERY = 32
_ELEMENTS_PER_SAMPLE = 1 << 18
_MAX_BACKWARDS = 8
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class _Optimizer:
    """What is known about one optimizer.

    Attributes:
        models: those that it trains.
        head, seconds: what its step events say about it, as JSON; seconds of its last step.
        chosen: fingerprinted parameters with their positions; names: theirs.
        every: after the first steps, one step in so many is fingerprinted; the same on every rank, since it depends on
            nothing but the parameters; looks: which ones.
        due: the step after which parameter sums are still to be written, or None.
        watch: what backward passes find of a fingerprinted step's gradients, until the next step.
    """

    __slots__ = (
        "_lr", "_lrs", "chosen", "due", "every", "head", "id", "looks", "models", "names", "seconds", "steps",
        "watch",
    )  # fmt: skip

    def __init__(self, number: int, optimizer: Any) -> None:
        self.id = number
        self.steps = 0
        self.seconds = "null"
        self.head = f'"optimizer":{number},"kind":{writer.encode(type(optimizer).__name__)}'
        self._lrs: list[float] = []
        self._lr = "[]"
        self.due: int | None = None
        self.watch: Watch | None = None
        params = [p for group in optimizer.param_groups for p in group["params"]]
        self.models: list[TrackedModel] = models.owners_of(params)
        named: dict[int, str] = {}
        for known in self.models:
            model = known.model()
            if model is not None:
                named |= {id(p): name for name, p in model.named_parameters()}
        self.chosen = [(i, params[i]) for i in choose(params)]
        self.names = [named.get(id(p), f"parameter {i}") for i, p in self.chosen]
        self.every = _EVERY * (1 + sum(p.numel() for _, p in self.chosen) // _ELEMENTS_PER_SAMPLE)
        self.looks = sampling.SampledSteps(self.every)

    def lr(self, optimizer: Any) -> str:
        """The learning rates of all groups as JSON."""
        lrs = [float(group.get("lr", 0.0)) for group in optimizer.param_groups]
        if lrs != self._lrs:
            self._lrs, self._lr = lrs, writer.encode(lrs)
        return self._lr

    def sampled(self) -> bool:
        """Whether the step that is about to be taken is fingerprinted."""
        return self.steps < FIRST_SAMPLED or self.looks.at(self.steps)


_optimizers: dict[int, _Optimizer] = {}
_num_optimizers = 0
_running: list[Any] = []
_running_from = 0.0
_due: list[_Optimizer] = []
_in_backward = False


def _known(optimizer: Any) -> _Optimizer:
    global _num_optimizers
    known = _optimizers.get(id(optimizer))
    if known is None:
        known = _optimizers[id(optimizer)] = _Optimizer(_num_optimizers, optimizer)
        _num_optimizers += 1
        weakref.finalize(optimizer, _optimizers.pop, id(optimizer), None).atexit = False
    return known


def _within(frame: FrameType | None, optimizer: Any) -> bool:
    """Whether the stack really is inside that optimizer's step, not after one that raised."""
    while frame is not None:
        if frame.f_locals.get("self") is optimizer:
            return True
        frame = frame.f_back
    return False


def _memory() -> tuple[int | None, int | None]:
    import torch

    rss = None
    try:
        descriptor = os.open("/proc/self/statm", os.O_RDONLY)
        try:
            rss = int(os.read(descriptor, 256).split()[1]) * _PAGE_BYTES
        finally:
            os.close(descriptor)
    except (OSError, IndexError, ValueError):
        pass
    device = torch.cuda.memory_allocated() if torch.cuda.is_initialized() else None
    return rss, device


@guarded("step")
def _before_step(optimizer: Any, has_closure: bool) -> None:
    global _running_from
    if _running and _running[0] is not optimizer and _within(sys._getframe(2), _running[0]):
        _running.append(optimizer)
        return
    del _running[:]
    models.end_evaluation()
    t = writer.now()
    known = _known(optimizer)
    if known in _due:
        _write_params(known)
    sampled = known.sampled()
    if known.steps == 0:
        for model in known.models:
            models.mark_trained(model)
    _write_step(optimizer, known, t, sampled, has_closure)
    if sampled:
        known.due = counters.steps
        _due.append(known)
        known.watch = watch(p for _, p in known.chosen)
        count = known.steps if known.steps < FIRST_SAMPLED else known.steps // known.every
        if count & (count - 1) == 0:  # after 0, 1, 2, 4, … steps, then windows: often enough, and cheap
            report_parameter_changes(known.models)
    known.steps += 1
    counters.steps += 1
    counters.start_next_step()
    _running.append(optimizer)
    _running_from = writer.now()


def _write_step(optimizer: Any, known: _Optimizer, t: float, sampled: bool, has_closure: bool) -> None:
    compute_from = counters.compute_from
    compute_s = (
        t - compute_from if compute_from is not None else max(0.0, t - counters.step_ended - counters.data_s)
    )
    loss, lr, synced = counters.loss, known.lr(optimizer), counters.synced
    grads = fingerprint(p.grad for _, p in known.chosen) if sampled and not has_closure else None
    more = {}
    if sampled:
        rss_bytes, device_bytes = _memory()
        more = {"rss_bytes": rss_bytes, "device_bytes": device_bytes, "site": code_locations.here()}
        if not has_closure:
            more |= missing(optimizer, known.models)
    # By hand what can be: this is the one event that every step pays for.
    line = (
        f'{{"e":"step","t":{t:.6f},"n":{counters.steps},{known.head},"lr":{lr},'
        f'"samples":{counters.fed or counters.delivered},'
        f'"data_s":{counters.data_s:.6f},"compute_s":{compute_s:.6f},"optimizer_s":{known.seconds},'
        f'"loss":{"null" if loss is None else loss if math.isfinite(loss) else writer.encode(loss)},'
        f'"synced":{"null" if synced is None else "true" if synced else "false"},'
        f'"backwards":{counters.micro_backwards},"unsynced":{counters.micro_unsynced}'
    )
    if known.watch is not None:
        line += f',"empty":{known.watch.empty},"full":{known.watch.full}'
        known.watch.end()
        known.watch = None
    if sampled:
        line += "," + writer.encode({"grads": grads, "grad_names": known.names, **more})[1:-1]
    writer.send((line + "}").encode())


@guarded("after step")
def _after_step(optimizer: Any) -> None:
    if _running and _running[0] is not optimizer:
        return
    del _running[:]
    counters.step_ended = writer.now()
    known = _optimizers.get(id(optimizer))
    if known is not None:
        known.seconds = f"{counters.step_ended - _running_from:.6f}"
        for model in known.models:
            models.note_versions(model)


def _write_params(known: _Optimizer) -> None:
    _due.remove(known)
    writer.write(events.PARAMS, n=known.due, names=known.names, sums=fingerprint(p for _, p in known.chosen))


def _write_due() -> None:
    while _due:
        _write_params(_due[0])


@guarded("backward")
def _backward(tensors: Any) -> None:
    # Every step pays for this: nothing is called that has nothing to do.
    if _due:
        _write_due()
    if counters.bypass is not None:
        models.confirm_bypass()
    if watches:
        look_again()
    counters.backwards += 1
    counters.micro_backwards += 1
    counters.micro_unsynced += counters.synced is False
    tensor = tensors[0] if isinstance(tensors, (list, tuple)) and len(tensors) == 1 else tensors
    if getattr(tensor, "is_cpu", False) and tensor.numel() == 1:
        counters.loss = tensor.item()
    if counters.backwards <= _MAX_BACKWARDS:
        writer.write(events.BACKWARD, loss=counters.loss, site=code_locations.here())


def _hooks() -> tuple[Any, Any]:
    from torch.compiler import is_compiling

    def before(optimizer: Any, args: Any, kwargs: dict[str, Any]) -> None:
        if not is_compiling():
            _before_step(optimizer, any(one is not None for one in (kwargs.get("closure"), *args[1:])))

    def after(optimizer: Any, _args: Any, _kwargs: Any) -> None:
        if not is_compiling():
            _after_step(optimizer)

    skip_compiling(before)
    skip_compiling(after)
    return before, after


@guarded("optimizer")
def _built(optimizer: Any) -> None:
    # Only to watch the model from its first forward pass on; parameters may still be added or moved.
    models.owners_of([p for group in optimizer.param_groups for p in group["params"]])


def install() -> None:
    """Hook optimizers and backward passes."""
    import torch
    from torch.optim.optimizer import (
        Optimizer,
        register_optimizer_step_post_hook,
        register_optimizer_step_pre_hook,
    )

    before, after = _hooks()
    register_optimizer_step_pre_hook(before)
    register_optimizer_step_post_hook(after)
    models.before_forward.append(_write_due)
    replace([Optimizer], "__init__", _wrap_built)
    replace([torch.autograd], "backward", _wrap_backward)


def _wrap_built(original: Any) -> Any:
    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        original(self, *args, **kwargs)
        _built(self)

    return __init__


def _wrap_backward(original: Any) -> Any:
    from torch.compiler import is_compiling

    @functools.wraps(original)
    def backward(tensors: Any, *args: Any, **kwargs: Any) -> None:
        global _in_backward
        if is_compiling() or _in_backward:  # inside: checkpointing recomputes and goes backward on its own
            original(tensors, *args, **kwargs)
            return
        _in_backward = True
        try:
            _backward(tensors)
            original(tensors, *args, **kwargs)
        finally:
            _in_backward = False

    return backward
