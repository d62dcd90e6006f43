"""What the trained models are given, and how: through their wrapper or around it, in training or in evaluation.

Watches classes, never instances, so that models stay picklable and copyable; a class is watched once one of its
instances is wrapped or handed to an optimizer.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

from grader.probe import code_locations, events, sampling
from grader.probe.counters import counters
from grader.probe.fingerprints import is_sharded, sample_hashes, sums
from grader.probe.patches import guarded, replace
from grader.probe.writer import writer

_MAX_BYPASSES = 8
_MAX_DEVICE_FEED_STEPS = 50
_FIRST_SPOTS = 4
_MAX_FINAL = 512
_MAX_OWNERS = 256


class TrackedModel:
    """A model that is trained, or about to be.

    Attributes:
        model: the module whose calls are watched (inside the wrapper, where there is one).
        wrapper: the DistributedDataParallel around it, or None.
        wrap: id of its WRAP event, or None.
        held: the parameters that DDP was given: id → name; empty without DDP. The wrapper keeps them alive.
        trained: its parameters with names, once an optimizer has stepped over them: held to the end of the script.
        versions: in-place change counters of some parameters after the last step.
    """

    __slots__ = ("__weakref__", "held", "model", "trained", "versions", "wrap", "wrapper")

    def __init__(self, model: Any) -> None:
        self.model = weakref.ref(model, functools.partial(_forget, id(model)))
        self.wrapper: Any = None
        self.wrap: int | None = None
        self.held: dict[int, str] = {}
        self.trained: list[tuple[str, Any]] = []
        self.versions: list[int] = []


class _Evaluation:
    """A run of forward passes outside training."""

    __slots__ = ("forwards", "key", "samples")

    def __init__(self, key: tuple[Any, ...]) -> None:
        self.key = key
        self.forwards = 0
        self.samples = 0


_tracked: dict[int, TrackedModel] = {}
_owners: dict[int, Any] = {}
_evaluation: _Evaluation | None = None
_num_bypasses = 0
_spots = sampling.SampledSteps(16)
_torch: Any = None
_ddp: Any = None
_inside = False  # during the forward pass of a tracked model: those inside it belong to it

before_forward: list[Callable[[], None]] = []
"""Called at each forward pass of a tracked model, before anything else."""

before_training: list[Callable[[], None]] = []
"""Called at the first training forward pass of each step."""

_finals: list[TrackedModel] = []


def _forget(key: int, _: object) -> None:
    _tracked.pop(key, None)


def track(model: Any) -> TrackedModel:
    """Watch the calls of this module from now on."""
    known = _tracked.get(id(model))
    if known is None:
        known = _tracked[id(model)] = TrackedModel(model)
        replace([type(model)], "__call__", _wrap_call)
    return known


def owners_of(params: list[Any]) -> list[TrackedModel]:
    """The models that these parameters belong to; they are tracked from now on.

    Wrapped models go first. Where there is none it is the smallest module that holds all the parameters, or, where
    none holds all of them, the modules that consist of nothing else.
    """
    wanted = {id(p) for p in params}
    modules = [ref() for ref in list(_owners.values())]
    modules = [m.module if isinstance(m, _ddp) else m for m in modules if m is not None]
    modules += [known.model() for known in list(_tracked.values())]
    wrapped, whole, parts = [], [], []
    for module in {id(m): m for m in modules if m is not None}.values():
        held = {id(p) for p in module.parameters()}
        if not held & wanted:
            continue
        known = _tracked.get(id(module))
        if known is not None and known.wrap is not None:
            wrapped.append(known)
        elif wanted <= held:
            whole.append((len(held), module))
        elif held <= wanted:
            parts.append(module)
    if wrapped:
        return wrapped
    if whole:
        parts = [min(whole, key=lambda pair: pair[0])[1]]
    return [track(module) for module in parts]


def mark_trained(known: TrackedModel) -> None:
    """An optimizer has stepped over this model's parameters: they belong to the run's result."""
    model = known.model()
    if model is None or known.trained:
        return
    known.trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad][:_MAX_FINAL]
    _finals.append(known)
    for old in _finals[:-2]:
        old.trained = []  # no more than two models are kept from being freed
    del _finals[:-2]


def note_versions(known: TrackedModel) -> None:
    """Remember how often a few parameters had been changed in place when the last step was over."""
    known.versions = [p._version for _, p in known.trained[:4]]


def write_finals() -> None:
    """Write the parameters of the trained models as the script leaves them."""
    end_evaluation()
    for known in _finals:
        _write_final(known)


@guarded("final")
def _write_final(known: TrackedModel) -> None:
    writer.write(
        events.FINAL,
        wrap=known.wrap,
        names=[name for name, _ in known.trained],
        sums=sums(p for _, p in known.trained),
        sharded=any(is_sharded(p) for _, p in known.trained),
        touched=known.versions != [p._version for _, p in known.trained[:4]],
    )


def _first_tensor(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    tensor = _torch.Tensor
    for value in (*args, *kwargs.values()):
        if isinstance(value, tensor):
            return value
        if isinstance(value, (list, tuple, dict)):
            parts = value.values() if isinstance(value, dict) else value
            for part in parts:
                if isinstance(part, tensor):
                    return part
    return None


@guarded("forward")
def _forward(known: TrackedModel, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    for action in before_forward:
        action()
    counters.forwards += 1
    counters.unfed_batches = 0
    wrapper = known.wrapper() if known.wrapper is not None else None
    through = wrapper is None or _ddp._active_ddp_module is wrapper or wrapper._use_python_reducer
    batch = _first_tensor(args, kwargs)
    size = 0 if batch is None else (int(batch.shape[0]) if batch.dim() else 1)
    if not (model.training and _torch.is_grad_enabled()):
        counters.credit = max(0, counters.credit - size)
        counters.data_s = 0.0  # the waiting was for evaluation
        _evaluate(known, wrapper is not None and through, model.training, size)
        return
    if _evaluation is not None:
        end_evaluation()
    if counters.compute_from is None:
        for action in tuple(before_training):
            action()
        counters.compute_from = writer.now()
    counters.fed += size
    if wrapper is not None:
        counters.synced = bool(through and wrapper.require_backward_grad_sync)
        counters.bypass = None if through else (known.wrap or 0, code_locations.here())
    explained = counters.explained or counters.credit > 0
    if explained:
        counters.credit = max(0, counters.credit - size)
        if not sampling.is_random() or not (counters.steps < _FIRST_SPOTS or _spots.at(counters.steps)):
            return
    if batch is not None and size and (batch.device.type == "cpu" or counters.steps < _MAX_DEVICE_FEED_STEPS):
        writer.write(events.FEED, step=counters.steps, hashes=sample_hashes(batch), size=size, spot=explained)


def _evaluate(known: TrackedModel, through: bool, training: bool, size: int) -> None:
    global _evaluation
    site = code_locations.here()
    key = (known.wrap, through, training, _torch.is_grad_enabled(), site)
    if _evaluation is None or _evaluation.key != key:
        end_evaluation()
        _evaluation = _Evaluation(key)
        _write_evaluation("begin", _evaluation)
    _evaluation.forwards += 1
    _evaluation.samples += size


def _write_evaluation(op: str, evaluation: _Evaluation) -> None:
    wrap, through, training, grad, site = evaluation.key
    writer.write(
        events.EVALUATION,
        op=op,
        wrap=wrap,
        through_wrapper=through,
        site=site,
        num_forwards=evaluation.forwards,
        num_samples=evaluation.samples,
        training_mode=training,
        grad_enabled=grad,
    )


@guarded("evaluation")
def end_evaluation() -> None:
    """Training goes on, or the script ends: the run of evaluating passes is over."""
    global _evaluation
    if _evaluation is not None:
        finished, _evaluation = _evaluation, None
        _write_evaluation("end", finished)


def confirm_bypass() -> None:
    """A backward pass follows: a forward pass around the wrapper has counted."""
    global _num_bypasses
    if counters.bypass is None:
        return
    wrap, site = counters.bypass
    counters.bypass = None
    if _num_bypasses < _MAX_BYPASSES:
        writer.write(events.BYPASS, wrap=wrap, site=site, n=_num_bypasses)
    _num_bypasses += 1


def install() -> None:
    """Notice which modules are asked for their parameters: optimizers are built from them."""
    global _torch, _ddp
    import torch
    from torch import nn

    _torch = torch
    _ddp = nn.parallel.DistributedDataParallel
    replace([nn.Module], "named_parameters", _wrap_named_parameters)


def _wrap_named_parameters(original: Any) -> Any:
    from torch.compiler import is_compiling

    @functools.wraps(original)
    def named_parameters(self: Any, *args: Any, **kwargs: Any) -> Any:
        if (
            not is_compiling()
            and id(self) not in _owners
            and len(_owners) < _MAX_OWNERS
            and kwargs.get("recurse", True)  # DDP asks every submodule for its own ones
        ):
            key = id(self)
            _owners[key] = weakref.ref(self, lambda _: _owners.pop(key, None))
        return original(self, *args, **kwargs)

    return named_parameters


def _wrap_call(original: Any) -> Any:
    from torch.compiler import is_compiling
    from torch.jit import is_tracing

    @functools.wraps(original)
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
        global _inside
        if is_compiling() or is_tracing():  # what we would do with the inputs would become part of the graph
            return original(self, *args, **kwargs)
        known = _tracked.get(id(self))
        if known is None or _inside:
            return original(self, *args, **kwargs)
        _inside = True
        try:
            _forward(known, self, args, kwargs)
            return original(self, *args, **kwargs)
        finally:
            _inside = False

    return __call__
