"""What the trained models are given, and how: through their wrapper or around it, in training or in evaluation.

Watches classes, never instances, so that models stay picklable and copyable; a class is watched once one of its
instances is wrapped or handed to an optimizer.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

from grader.probe.data import fed_samples
from grader.probe.data.model_inputs import batch_of
from grader.probe.hooks import code_locations, transforms
from grader.probe.hooks.counters import counters
from grader.probe.hooks.patches import guarded, replace
from grader.probe.models import evaluation_passes
from grader.probe.models.training_modes import Modes
from grader.probe.models.used_weights import UsedWeights
from grader.probe.steps import device_steps
from grader.probe.trace import events
from grader.probe.trace.writer import clock, writer

_MAX_BYPASSES = 8
_MAX_TRACKED = 256


class TrackedModel:
    """A model that is trained, or about to be.

    Attributes:
        model: the module whose calls are watched (inside the wrapper, where there is one).
        wrapper: the DistributedDataParallel around it, or None. wrap: id of its WRAP event, or None.
        held: the parameters that DDP was given: id → name; empty without DDP. The wrapper keeps them alive.
        frozen: ids of those that required no gradient when it was wrapped.
        trains: whether it is known to be trained: wrapped, handed to an optimizer, or seen to change.
        stepped: whether optimizers step its parameters, or nobody does. weights: those that its passes used till then.
        trained: its parameters with names, once an optimizer has stepped over them: held to the end of the script.
        lends: whether each step brings other tensors in place of its weights (`functional_call`).
        some: the first few of these parameters; versions: their in-place change counters after the last step.
        unheld: by name, parameters with a gradient that no optimizer held, and their fingerprints at that time.
        modes: those that it went forward in since its last step.
    """

    __slots__ = (
        "__weakref__", "frozen", "held", "lends", "looks", "model", "modes", "some", "stepped", "trained", "trains",
        "unheld", "versions", "weights", "wrap", "wrapper",
    )  # fmt: skip

    def __init__(self, model: Any) -> None:
        self.model = weakref.ref(model, functools.partial(_forget, id(model)))
        self.wrapper: Any = None
        self.wrap: int | None = None
        self.held: dict[int, str] = {}
        self.frozen: set[int] = set()
        self.trains = False
        self.stepped = self.lends = False
        self.looks = 0
        self.weights: UsedWeights | None = None
        self.trained: list[tuple[str, Any]] = []
        self.some: list[Any] = []
        self.versions: list[int] = []
        self.unheld: dict[str, tuple[Any, list[float | None]]] = {}
        self.modes = Modes()


_tracked: dict[int, TrackedModel] = {}
_stepped: set[int] = set()
_num_bypasses = 0
_torch: Any = None
_ddp: Any = None
_inside = False  # during the forward pass of a tracked model: those inside it belong to it

before_pass: list[Callable[[], None]] = []
"""Called at each training forward pass of a tracked model and each backward pass; mostly empty.

Not in evaluation: one rank alone may evaluate, with averaged weights in the place of those that it trains.
"""

before_training_forward: list[Callable[[TrackedModel, Any], None]] = []
"""Called at each forward pass in training mode with gradients, also of modules that may yet turn out to be trained."""

before_evaluation: list[Callable[[TrackedModel], None]] = []
"""Called at each other forward pass of a model that lends itself to weights of the script's own."""

before_training: list[Callable[[], None]] = []
"""Called at the first training forward pass of each step."""


def going_forward() -> bool:
    """Whether a tracked model is going forward."""
    return _inside


def _forget(key: int, _: object) -> None:
    _tracked.pop(key, None)


def track(model: Any) -> TrackedModel:
    """Watch the calls of this module from now on."""
    known = _tracked.get(id(model))
    if known is None:
        known = _tracked[id(model)] = TrackedModel(model)
        replace([type(model)], "__call__", _wrap_call)
    return known


def tracked() -> list[TrackedModel]:
    """All modules that were asked for their parameters and are still there."""
    return list(_tracked.values())


def owners_of(params: list[Any]) -> list[TrackedModel]:
    """The models that these parameters belong to, which an optimizer trains from now on.

    Wrapped models go first. Where there is none it is the smallest module that holds all the parameters, or, where
    none holds all of them, the modules that consist of nothing else.
    """
    wanted = {id(p) for p in params}
    wrapped, whole, parts = [], [], []
    for known in list(_tracked.values()):
        module = known.model()
        held = {id(p) for p in module.parameters()} if module is not None else set()
        if not held & wanted:
            continue
        if known.wrap is not None:
            wrapped.append(known)
        elif wanted <= held:
            whole.append((len(held), known))
        elif held <= wanted:
            parts.append(known)
    _stepped.update(wanted)
    found = wrapped or ([min(whole, key=lambda pair: pair[0])[1]] if whole else parts)
    for known in found:
        known.trains = known.stepped = True
    return found


def names_of(params: list[Any]) -> dict[int, str]:
    """By id, what the largest modules that were asked for their parameters call these."""
    wanted, found = {id(p) for p in params}, dict[int, str]()
    asked = [
        list(m.named_parameters()) for known in list(_tracked.values()) if (m := known.model()) is not None
    ]
    for named in sorted(asked, key=len):
        found |= {id(p): name for name, p in named if id(p) in wanted}
    return found


def held(param: Any) -> bool:
    """Whether an optimizer was given this parameter."""
    return id(param) in _stepped


def belongs_elsewhere(known: TrackedModel, tensors: list[Any]) -> bool:
    """Whether an optimizer steps any of these tensors of a module, or a wrapper around another module holds them."""
    wrapped = [one.held for one in list(_tracked.values()) if one is not known and one.held]
    return any(id(t) in _stepped or any(id(t) in held for held in wrapped) for t in tensors)


@guarded("module", values=True)
def _turns_out(known: TrackedModel, model: Any) -> bool:
    """Whether a module that nobody wrapped or gave to an optimizer turns out to be trained."""
    if not known.stepped and model.training and _torch.is_grad_enabled():
        for look in before_training_forward:
            look(known, model)
    return known.trains


@guarded("forward", values=True)
def _forward(known: TrackedModel, model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Note a forward pass; the samples that it was given."""
    now = counters
    now.forwards += 1
    now.unfed_batches = 0
    wrapper = known.wrapper() if known.wrapper is not None else None
    # A wrapper that nobody holds any more averages nothing.
    gone = known.wrapper is not None and wrapper is None
    through = not gone and (
        wrapper is None or _ddp._active_ddp_module is wrapper or wrapper._use_python_reducer
    )
    batch = batch_of(args, kwargs)
    shape: tuple[int, ...] = () if batch is None else tuple(batch.shape)
    size = int(shape[0]) if shape else int(batch is not None)
    grad = _torch.is_grad_enabled()
    if not (grad and known.modes.train(model, size)):
        now.credit = max(0, now.credit - size)
        now.data_s = 0.0  # the waiting was for evaluation
        if known.lends:
            for first in before_evaluation:
                first(known)
        through_wrapper = wrapper is not None and through
        evaluation_passes.note(known.wrap, through_wrapper, model.training, grad, size, batch)
        return size
    # Every step pays for this: nothing is called that has nothing to do.
    for action in tuple(before_pass):
        action()
    evaluation_passes.end()
    if not known.stepped:
        for look in before_training_forward:
            look(known, model)
    if now.compute_from is None:
        if before_training:  # empty after the first steps
            for action in tuple(before_training):
                action()
        now.compute_from = clock()
        if batch is not None and device_steps.on_device(batch):
            device_steps.begin(batch.device)
    now.fed += size
    if len(shape) == 2:
        now.numbers += size * int(shape[1])
    if wrapper is not None or gone:
        now.synced = bool(through and wrapper is not None and wrapper.require_backward_grad_sync)
        now.bypass = None if through else (known.wrap or 0, code_locations.here())
    fed_samples.note(batch, size)
    return size


@guarded("forward elsewhere", values=True)
def _elsewhere(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Count what a module is given that nobody is known to train, such as a copy that averages weights."""
    batch = args[0] if args and type(args[0]) is _torch.Tensor else batch_of(args, kwargs)
    counters.elsewhere += batch.shape[0] if batch is not None and batch.dim() else 1


def _put_away(samples: int) -> None:
    """Nothing came back for some; where that is so in evaluation, too, the network may make one answer of several."""
    if not (transforms.depth() or evaluation_passes.put_away(samples)):
        counters.fed -= samples


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
    """Track the modules that are asked for their parameters: whoever trains one asks."""
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
        # Whoever trains a module asks it for its parameters. DDP asks every submodule for its own ones.
        if (
            id(self) not in _tracked
            and len(_tracked) < _MAX_TRACKED
            and kwargs.get("recurse", True)
            and not is_compiling()
            and not isinstance(self, _ddp)
        ):
            track(self)
        return original(self, *args, **kwargs)

    return named_parameters


def _wrap_call(original: Any) -> Any:
    from torch._C import _is_tracing
    from torch.compiler import is_compiling

    @functools.wraps(original)
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
        global _inside
        # While a graph is made, what we would do with the inputs would become part of it.
        if is_compiling() or _inside or _is_tracing():
            return original(self, *args, **kwargs)
        known = _tracked.get(id(self))
        if known is None or not (known.trains or _turns_out(known, self)):
            _elsewhere(args, kwargs)
            return original(self, *args, **kwargs)
        _inside = True
        try:
            given = _forward(known, self, args, kwargs)
            made = original(self, *args, **kwargs)
            if given and type(made) is _torch.Tensor and made.dim() and made.shape[0] < given:
                _put_away(given - made.shape[0])
            return made
        finally:
            _inside = False

    return __call__
